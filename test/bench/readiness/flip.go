package readiness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/vmstencil/stencil/test/bench/load"
	"github.com/vmstencil/stencil/test/bench/report"
	"github.com/vmstencil/stencil/test/bench/statistics"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/manager"
)

// FlipResult is what RunFlip has measured.
type FlipResult struct {
	options Options
	// managers and clients are the seconds until all statuses were written, by the manager and by a client, one of each in every round.
	managers, clients []float64
	// events is the largest number of events of a flip.
	events int
}

const (
	// flipPoll is how often the metrics of the manager are read. Half of it adds to the time of the manager, and so does the work of each read.
	flipPoll = 500 * time.Millisecond
	// eventLimit is how long to wait for the event about a flip.
	eventLimit = time.Minute
)

// RunFlip measures the time until all templates of one DataSource report that it cannot be used, and then that it can, and the time that a client
// takes to write the same statuses with as many requests at once. Steady is not used.
func RunFlip(ctx context.Context, options Options) (result *FlipResult, err error) {
	options.DataSources = 1
	result = &FlipResult{options: options}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	plane, err := controlplane.Start(ctx, controlplane.Options{Log: options.Log})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	options.Progress("readiness-flip: creating %d templates of one DataSource", options.Templates)
	cluster, process, err := prepare(ctx, plane, options)
	if err != nil {
		return nil, err
	}
	running, err := manager.Start(ctx, process)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, running.Stop()) }()
	if err := await(ctx, running, flipPoll, all(options.Templates)); err != nil {
		return nil, err
	}
	for round := range options.Rounds {
		options.Progress("readiness-flip: round %d of %d", round+1, options.Rounds)
		statuses, err := result.byManager(ctx, cluster, running)
		if err != nil {
			return nil, err
		}
		if err := running.Stop(); err != nil {
			return nil, err
		}
		if err := result.byClient(ctx, cluster, statuses); err != nil {
			return nil, err
		}
		// The client has written the same as the manager before: it has nothing to do.
		if running, err = manager.Start(ctx, process); err != nil {
			return nil, err
		}
		if err := await(ctx, running, flipPoll, all(options.Templates)); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// all is whether so many templates are ready, and no other.
func all(templates int) func(counters) bool {
	return func(c counters) bool { return c.value(`stencil_template_readiness{status="True"}`) == templates }
}

// byManager points the DataSource at a claim that does not exist, and back. It returns the requests that write the statuses of both states.
func (r *FlipResult) byManager(ctx context.Context, cluster *cluster, running *manager.Process) (statuses []status, err error) {
	var elapsed time.Duration
	for _, claim := range []string{"nowhere", "disk-0"} {
		took, err := r.flip(ctx, cluster, running, claim)
		if err != nil {
			return nil, err
		}
		elapsed += took
		found, err := cluster.statuses(ctx)
		if err != nil {
			return nil, err
		}
		statuses = append(statuses, found...)
	}
	r.managers = append(r.managers, elapsed.Seconds())
	return statuses, nil
}

func (r *FlipResult) flip(ctx context.Context, cluster *cluster, running *manager.Process, claim string) (took time.Duration, err error) {
	before, err := read(ctx, running)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := cluster.stand(ctx, claim); err != nil {
		return 0, err
	}
	if err := await(ctx, running, flipPoll, func(c counters) bool { return c.value(writes) >= before.value(writes)+r.options.Templates }); err != nil {
		return 0, err
	}
	took = time.Since(began)
	return took, running.Poll(ctx, flipPoll, eventLimit, func() (bool, error) {
		now, err := read(ctx, running)
		r.events = max(r.events, now.events()-before.events())
		return now.events() > before.events(), err
	})
}

// events counts the events about readiness.
func (c counters) events() int {
	const total = "stencil_template_readiness_events_total"
	return c.value(total+`{object="source"}`) + c.value(total+`{object="template"}`)
}

// byClient writes the statuses, in their order.
func (r *FlipResult) byClient(ctx context.Context, cluster *cluster, statuses []status) error {
	began := time.Now()
	err := load.Each(ctx, len(statuses), writers, func(ctx context.Context, number int) error {
		one := statuses[number]
		err := cluster.client.CoreV1().RESTClient().Patch(types.ApplyYAMLPatchType).AbsPath(one.path).
			Param("fieldManager", "stencil-template-readiness").Param("force", "true").Body(one.body).Do(ctx).Error()
		if err != nil {
			return fmt.Errorf("writing %s: %w", one.path, err)
		}
		return nil
	})
	r.clients = append(r.clients, time.Since(began).Seconds())
	return err
}

// stand points the DataSource at a claim.
func (c *cluster) stand(ctx context.Context, claim string) error {
	return c.patch(ctx, dataSourcePath(0), fmt.Appendf(nil, `{"spec":{"source":{"pvc":{"name":%q}}}}`, claim))
}

// status is a request that writes the status of a template.
type status struct {
	path string
	body []byte
}

// statuses returns the requests that write the current statuses of all templates.
func (c *cluster) statuses(ctx context.Context) ([]status, error) {
	raw, err := c.client.CoreV1().RESTClient().Get().AbsPath(templatesPath).Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("listing templates: %w", err)
	}
	var list struct {
		Items []struct {
			Metadata struct {
				Name string `json:"name"`
				UID  string `json:"uid"`
			} `json:"metadata"`
			Status json.RawMessage `json:"status"`
		} `json:"items"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("decoding templates: %w", err)
	}
	var all []status
	for _, item := range list.Items {
		body := fmt.Appendf(nil, `{"apiVersion":"template.kubevirt.io/v1beta1","kind":"VirtualMachineTemplate","metadata":{"namespace":%q,"name":%q,"uid":%q},"status":%s}`,
			namespace, item.Metadata.Name, item.Metadata.UID, item.Status)
		all = append(all, status{templatesPath + "/" + item.Metadata.Name + "/status", body})
	}
	return all, nil
}

// wantedRatio is the project's target.
const wantedRatio = 1.3

// Section reports the result.
func (r *FlipResult) Section(context string) report.Section {
	ratio := statistics.Median(statistics.Ratios(r.managers, r.clients))
	return report.Section{
		Name:    "readiness-flip",
		Context: fmt.Sprintf("%s; medians of %d rounds; %d templates of one DataSource", context, len(r.managers), r.options.Templates),
		Tables: []report.Table{{
			Title:   "All templates of a DataSource change their readiness",
			Columns: []string{"what", "measured"},
			Rows: [][]string{
				{"stencil-manager: until all statuses are written after the DataSource cannot be used, and after it can again", fmt.Sprintf("%.2f s", statistics.Median(r.managers))},
				{"a client that writes the same statuses", fmt.Sprintf("%.2f s", statistics.Median(r.clients))},
				{"events about a change, at most", fmt.Sprint(r.events)},
			},
		}},
		Targets: []report.Target{
			{What: "the manager's time beside the client's, within a round", Wanted: fmt.Sprintf("≤ %.1f×", wantedRatio), Measured: fmt.Sprintf("%.2f×", ratio), Met: ratio <= wantedRatio},
			{What: "events about a change", Wanted: "1", Measured: fmt.Sprint(r.events), Met: r.events == 1},
		},
		Notes: []string{fmt.Sprintf("Both send the same requests, %d at a time, and decode no response; the client has their bodies ready, and writes them while the manager is stopped. No CDI runs. The API server shares the machine's cores.", writers)},
	}
}
