package goldenimage_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/goldenimage"
)

func window(hours int) *metav1.Duration {
	return &metav1.Duration{Duration: time.Duration(hours) * time.Hour}
}

// 300 images are spread over their window: no tenth of it has less than half or more than double its share.
func TestChecksAreSpread(t *testing.T) {
	const images, tenths = 300, 10
	opens := time.Date(2026, 5, 4, 2, 0, 0, 0, time.UTC)
	for _, cluster := range []string{"a", "b", "6fd04095-0973-42fe-9370-31172dbcab22"} {
		var counts [tenths]int
		seconds := map[time.Time]int{}
		for i := range images {
			schedule, err := goldenimage.NewSchedule(v1alpha1.GoldenImageSchedule{Cron: "0 2 * * *", Window: window(4)}, cluster, "golden", fmt.Sprintf("image-%d", i))
			if err != nil {
				t.Fatal(err)
			}
			next := schedule.Next(opens.Add(-time.Hour))
			at := next.Sub(opens)
			if at < 0 || at >= 4*time.Hour {
				t.Fatalf("image %d is checked at %s, outside its window", i, next)
			}
			counts[at*tenths/(4*time.Hour)]++
			seconds[next]++
			if again := schedule.Next(next); again.Sub(next) != 24*time.Hour {
				t.Fatalf("image %d is checked again at %s after %s", i, again, next)
			}
		}
		for tenth, count := range counts {
			if share := images / tenths; count < share/2 || count > share*2 {
				t.Errorf("cluster %s: %d images in tenth %d of the window: %v", cluster, count, tenth, counts)
			}
		}
		for at, count := range seconds {
			if count > 4 {
				t.Errorf("cluster %s: %d images are checked at %s", cluster, count, at)
			}
		}
	}
}

func TestSchedule(t *testing.T) {
	at := func(hour, minute int) time.Time { return time.Date(2026, 5, 4, hour, minute, 0, 0, time.UTC) }
	now, err := goldenimage.NewSchedule(v1alpha1.GoldenImageSchedule{Cron: "30 1 * * *", Window: window(0)}, "c", "golden", "fedora")
	if err != nil {
		t.Fatal(err)
	}
	if got := now.Next(at(1, 29)); !got.Equal(at(1, 30)) {
		t.Errorf("without a window it is checked at %s", got)
	}
	spec := v1alpha1.GoldenImageSchedule{Cron: "0 0 * * *", Window: window(12)}
	one, _ := goldenimage.NewSchedule(spec, "c", "golden", "fedora")
	other, _ := goldenimage.NewSchedule(spec, "d", "golden", "fedora")
	if one.Next(at(0, 0)).Equal(other.Next(at(0, 0))) {
		t.Error("two clusters check at the same time")
	}
	// In the open window, the time is later on the same day or on the next day, and always the same.
	first := one.Next(at(0, 0))
	if got := one.Next(first.Add(-time.Second)); !got.Equal(first) {
		t.Errorf("got %s, want %s", got, first)
	}
	_, err = goldenimage.NewSchedule(v1alpha1.GoldenImageSchedule{Cron: "every day"}, "c", "golden", "fedora")
	if want := `spec.schedule.cron: "every day": expected exactly 5 fields, found 2: [every day]`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
