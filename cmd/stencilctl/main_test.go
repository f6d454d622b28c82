package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/internal/testfile"
)

var update = flag.Bool("update", false, "write what the commands print to testdata/golden")

// unplaced is a template without namespace.
const unplaced = `{apiVersion: template.kubevirt.io/v1beta1, kind: VirtualMachineTemplate, metadata: {name: web}, spec: {parameters: [{name: NAME}], virtualMachine: {metadata: {name: "${NAME}"}}}}`

// accompanied is a template with other objects.
const accompanied = `
apiVersion: template.kubevirt.io/v1beta1
kind: VirtualMachineTemplate
metadata: {name: web}
spec:
  message: the password is in the Secret ${NAME}-db
  parameters:
  - {name: NAME, required: true}
  - {name: PASSWORD, sensitive: true, value: correct horse}
  - {name: PORT, type: int, value: "9007199254740993"}
  virtualMachine:
    metadata: {name: "${NAME}"}
    spec: {runStrategy: Halted, template: {spec: {domain: {devices: {}}, volumes: [{name: a, cloudInitNoCloud: {userData: "${PASSWORD|json}"}}]}}}
  objects:
  - {apiVersion: v1, kind: Secret, metadata: {name: "${NAME}-db"}, stringData: {password: "${PASSWORD}"}}
  - {apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: "${NAME}"}, spec: {ports: [{port: "${{PORT}}"}]}}
`

// copying is a template that copies claims.
const copying = `
apiVersion: template.kubevirt.io/v1beta1
kind: VirtualMachineTemplate
metadata: {name: box, namespace: golden}
spec:
  parameters: [{name: NAME, required: true}, {name: IMAGE, value: data}, {name: SIZE, type: int, value: "9007199254740993"}]
  virtualMachine:
    metadata: {name: "${NAME}"}
    spec:
      runStrategy: Halted
      dataVolumeTemplates:
      - {metadata: {name: "${NAME}-root"}, spec: {source: {pvc: {namespace: golden, name: fedora}}, storage: {}}}
      - {metadata: {name: "${NAME}-data"}, spec: {source: {pvc: {namespace: golden, name: "${IMAGE}"}}, storage: {}}}
      template: {spec: {terminationGracePeriodSeconds: 9007199254740993, domain: {devices: {}}}}
`

// commands run in testdata; their output is compared with a golden file.
var commands = map[string]struct {
	line  string
	stdin string
	// colour means that the output is a terminal.
	colour bool
}{
	"help":                                        {line: "kubectl-stencil policy --help"},
	"an unknown command":                          {line: "stencilctl policy chek"},
	"help of all":                                 {line: "stencilctl --help"},
	"options":                                     {line: "kubectl-stencil options"},
	"an unknown command that is near":             {line: "stencilctl creat golden/web"},
	"an unknown command of another program":       {line: "stencilctl render golden/web"},
	"an unknown command beside an action":         {line: "stencilctl defaults unpn web-1"},
	"an unknown command that is near nothing":     {line: "stencilctl frobnicate"},
	"version without a cluster":                   {line: "stencilctl version --kubeconfig none -o json"},
	"an unknown flag":                             {line: "stencilctl policy check --quick policies"},
	"an unknown format":                           {line: "stencilctl policy check -o xml policies"},
	"check good policies":                         {line: "stencilctl policy check policies"},
	"check broken policies":                       {line: "stencilctl policy check broken"},
	"check broken, as JSON":                       {line: "stencilctl policy check broken/syntax.rego -o json"},
	"check what no request reaches":               {line: "stencilctl policy check unreached"},
	"test what no request reaches":                {line: "stencilctl policy test unreached"},
	"check, as SARIF":                             {line: "stencilctl policy check broken -o sarif"},
	"check, as JUnit":                             {line: "stencilctl policy check broken policies -o junit"},
	"test, as SARIF":                              {line: "stencilctl policy test policies broken/failing.yaml broken/syntax.rego -o sarif --coverage-min 90"},
	"check on a terminal":                         {line: "kubectl-stencil policy check broken/syntax.rego", colour: true},
	"check the standard input":                    {line: "stencilctl policy check -", stdin: "kind: VirtualMachinePolicy\n"},
	"check nothing":                               {line: "stencilctl policy check objects"},
	"test":                                        {line: "stencilctl policy test policies -v --coverage"},
	"test, failing":                               {line: "stencilctl policy test broken/failing.yaml --coverage-min 90"},
	"test, not compiling":                         {line: "stencilctl policy test broken/syntax.rego"},
	"test, as JUnit":                              {line: "stencilctl policy test policies broken/failing.yaml broken/syntax.rego -o junit --coverage-min 90"},
	"test, as JSON":                               {line: "stencilctl policy test broken/failing.yaml -o json"},
	"eval, denied":                                {line: "stencilctl policy eval -f objects/vm.yaml,objects/instancetype.yaml -p policies"},
	"eval, a size is not known":                   {line: "stencilctl policy eval -f objects/vm.yaml -p policies/cpus.rego"},
	"eval, allowed":                               {line: "stencilctl policy eval -f objects/good.yaml -p policies"},
	"eval, as YAML":                               {line: "stencilctl policy eval -f objects/vm.yaml --instancetype-file objects/instancetype.yaml -p policies -o yaml"},
	"eval, rendered":                              {line: "stencilctl policy eval -f objects/short.yaml --template-file objects/template.yaml -p policies"},
	"eval, with objects":                          {line: "stencilctl policy eval -f attached/vm.yaml --template-file attached/template.yaml -p attached/policy.yaml"},
	"test, with objects":                          {line: "stencilctl policy test attached/policy.yaml -v"},
	"eval, not rendered":                          {line: "stencilctl policy eval -f objects/short.yaml -p policies/registries.yaml"},
	"eval, updated":                               {line: "stencilctl policy eval -f objects/good.yaml --old objects/old.yaml -p changes --user ada"},
	"eval, other namespaces":                      {line: "stencilctl policy eval -f objects/old.yaml --operation DELETE -p changes --user ada"},
	"eval, namespace labels":                      {line: "stencilctl policy eval -f objects/old.yaml --operation delete -p changes --user ada --namespace-labels team=shop"},
	"eval, excluded":                              {line: "stencilctl policy eval -f objects/old.yaml --operation DELETE -p changes --user ada --group admins --namespace-labels team=shop"},
	"eval, parameters":                            {line: "stencilctl policy eval -f objects/good.yaml -p policies/cpus.rego --parameters objects/parameters.json"},
	"eval, in working hours":                      {line: "stencilctl policy eval -f objects/good.yaml -p times --time 2026-11-27T08:00:00Z"},
	"eval, in the evening":                        {line: "stencilctl policy eval -f objects/good.yaml -p times --time 2026-11-27T20:30:00+01:00"},
	"eval, without a time":                        {line: "stencilctl policy eval -f objects/good.yaml -p times"},
	"eval, a time that is none":                   {line: "stencilctl policy eval -f objects/good.yaml -p times --time yesterday"},
	"eval, excepted":                              {line: "stencilctl policy eval -f objects/vm.yaml,objects/instancetype.yaml -p policies --exception exceptions/cpus.yaml,exceptions/registries.yaml --user ada --time 2026-11-30T23:59:59Z"},
	"eval, excepted for another":                  {line: "stencilctl policy eval -f objects/vm.yaml,objects/instancetype.yaml -p policies --exception exceptions/cpus.yaml,exceptions/registries.yaml --time 2026-11-30T23:59:59Z"},
	"eval, excepted, as YAML":                     {line: "stencilctl policy eval -f objects/vm.yaml,objects/instancetype.yaml -p policies/cpus.rego --exception exceptions/cpus.yaml --time 2026-11-30T23:59:59Z -o yaml"},
	"eval, an exception has ended":                {line: "stencilctl policy eval -f objects/vm.yaml,objects/instancetype.yaml -p policies/cpus.rego --exception exceptions/cpus.yaml --time 2026-12-01T00:00:00Z"},
	"eval, no exceptions":                         {line: "stencilctl policy eval -f objects/vm.yaml -p policies --exception objects"},
	"eval, exception without names":               {line: "stencilctl policy eval -f objects/vm.yaml -p policies --exception exceptions/nameless.yaml"},
	"eval, exception without end":                 {line: "stencilctl policy eval -f objects/vm.yaml -p policies --exception exceptions/endless.yaml"},
	"eval, exception misspelt":                    {line: "stencilctl policy eval -f objects/vm.yaml -p policies --exception exceptions/misspelt.yaml"},
	"eval, exception of no version":               {line: "stencilctl policy eval -f objects/vm.yaml -p policies --exception exceptions/old.yaml"},
	"eval, exception of no time":                  {line: "stencilctl policy eval -f objects/vm.yaml -p policies --exception exceptions/time.yaml"},
	"replay, with an exception":                   {line: "stencilctl policy eval --decision decisions.jsonl -p policies --exception exceptions/cpus.yaml"},
	"eval, broken policies":                       {line: "stencilctl policy eval -f objects/vm.yaml -p broken"},
	"eval, nothing to judge":                      {line: "stencilctl policy eval -f objects/instancetype.yaml -p policies"},
	"eval, update without old":                    {line: "stencilctl policy eval -f objects/vm.yaml -p policies --operation UPDATE"},
	"replay":                                      {line: "stencilctl policy eval --decision decisions.jsonl -p policies"},
	"replay, as JSON":                             {line: "stencilctl policy eval --decision - -p policies/cpus.rego -o json", stdin: `{"decision": {"outcome": "allowed", "policies": [{"name": "cpus", "digest": "sha256:0", "enforcement": "Warn"}], "inputDigest": "", "input": {"request": {"operation": "CREATE", "kind": "VirtualMachine", "namespace": "shop", "name": "web"}, "object": {}}}}`},
	"replay, no decision":                         {line: "stencilctl policy eval --decision - -p policies", stdin: "{\"msg\": \"hello\"}\n"},
	"explain":                                     {line: "stencilctl policy explain -f objects/vm.yaml -p policies --instancetype-file objects/instancetype.yaml"},
	"explain, nothing fires":                      {line: "stencilctl policy explain -f objects/good.yaml -p policies"},
	"explain, as JSON":                            {line: "stencilctl policy explain -f objects/good.yaml -p policies/cpus.rego -o json"},
	"fmt":                                         {line: "stencilctl policy fmt unformatted/policy.yaml"},
	"fmt the standard input":                      {line: "stencilctl policy fmt -", stdin: "package a\nx=1\n"},
	"fmt, differences":                            {line: "stencilctl policy fmt --check --diff unformatted policies"},
	"fmt, broken":                                 {line: "stencilctl policy fmt broken/syntax.rego"},
	"simulate, no cluster":                        {line: "stencilctl policy simulate -p policies --kubeconfig none"},
	"prove":                                       {line: "stencilctl policy prove -p prove/policies.yaml -f prove/templates.yaml,prove/approvals.yaml,prove/sizes.yaml -n shop --time 2026-11-27T08:00:00Z"},
	"prove, another namespace":                    {line: "stencilctl policy prove -p prove/policies.yaml -f prove/templates.yaml,prove/approvals.yaml,prove/sizes.yaml -n pub --namespace-labels stage=test --time 2026-11-27T04:00:00Z"},
	"prove, on a terminal":                        {line: "stencilctl policy prove -p prove/policies.yaml -f prove/templates.yaml,prove/approvals.yaml,prove/sizes.yaml -n shop", colour: true},
	"prove, as JSON":                              {line: "stencilctl policy prove -p prove/policies.yaml -f prove/templates.yaml,prove/approvals.yaml,prove/sizes.yaml -n bakery --time 2026-11-27T08:00:00Z -o json"},
	"prove, as SARIF":                             {line: "stencilctl policy prove -p prove/policies.yaml -f prove/templates.yaml,prove/approvals.yaml,prove/sizes.yaml -n shop -o sarif"},
	"prove, as JUnit":                             {line: "stencilctl policy prove -p prove/policies.yaml -f prove/templates.yaml,prove/approvals.yaml,prove/sizes.yaml -n shop -o junit"},
	"prove, without approvals":                    {line: "stencilctl policy prove -p prove/policies.yaml -f prove/templates.yaml,prove/sizes.yaml --param SSH_KEY=x,CORES=8 --time 2026-11-27T08:00:00Z"},
	"prove, without instance types":               {line: "stencilctl policy prove -p prove/policies.yaml -f prove/templates.yaml -n shop --param SSH_KEY=x,PIN=1 --time 2026-11-27T08:00:00Z"},
	"prove, holding":                              {line: "stencilctl policy prove -p policies/registries.yaml -f prove/templates.yaml --param SSH_KEY=x"},
	"prove, too many combinations":                {line: "stencilctl policy prove -p prove/policies.yaml -f prove/templates.yaml,prove/approvals.yaml,prove/sizes.yaml -n shop --limit 3 --time 2026-11-27T08:00:00Z"},
	"prove, no limit":                             {line: "stencilctl policy prove -p prove/policies.yaml -f prove/templates.yaml,prove/approvals.yaml,prove/sizes.yaml --limit 0"},
	"prove, no policies":                          {line: "stencilctl policy prove -f prove/templates.yaml,prove/approvals.yaml,prove/sizes.yaml"},
	"prove, broken policies":                      {line: "stencilctl policy prove -p broken -f prove/templates.yaml,prove/approvals.yaml,prove/sizes.yaml"},
	"prove, no templates":                         {line: "stencilctl policy prove -p prove/policies.yaml -f prove/approvals.yaml"},
	"prove, no such parameter":                    {line: "stencilctl policy prove -p prove/policies.yaml -f prove/templates.yaml,prove/approvals.yaml,prove/sizes.yaml -n shop --param COERS=1"},
	"prove, no value":                             {line: "stencilctl policy prove -p prove/policies.yaml -f prove/templates.yaml,prove/approvals.yaml,prove/sizes.yaml -n shop --param CORES"},
	"prove, a namespace that no approval selects": {line: "stencilctl policy prove -p prove/policies.yaml -f prove/templates.yaml,prove/approvals.yaml,prove/sizes.yaml -n kitchen"},
	"prove, an approval by labels only":           {line: "stencilctl policy prove -p prove/policies.yaml -f prove/templates.yaml,prove/approvals.yaml,prove/sizes.yaml"},
	"prove, no file":                              {line: "stencilctl policy prove -p prove/policies.yaml -f prove/none.yaml"},
	"prove, no cluster":                           {line: "stencilctl policy prove -p prove/policies.yaml --kubeconfig none"},
	"prove, a time that is none":                  {line: "stencilctl policy prove -p prove/policies.yaml -f prove/templates.yaml,prove/approvals.yaml,prove/sizes.yaml --time yesterday"},
	"prove, an approval that is not valid":        {line: "stencilctl policy prove -p prove/policies.yaml -f prove/templates.yaml,-", stdin: "{apiVersion: stencil.kubevirt.io/v1alpha1, kind: TemplateApproval, metadata: {name: a}, spec: {namespaces: [a], templates: [{namespace: golden}], parameters: [{name: A}]}}"},
	"prove, an unknown field":                     {line: "stencilctl policy prove -p prove/policies.yaml -f prove/templates.yaml,-", stdin: "{apiVersion: stencil.kubevirt.io/v1alpha1, kind: TemplateApproval, metadata: {name: a}, spec: {namespace: a}}"},
	"prove, a malformed template":                 {line: "stencilctl policy prove -p prove/policies.yaml -f -", stdin: "{apiVersion: template.kubevirt.io/v1beta1, kind: VirtualMachineTemplate, metadata: {name: a}, spec: 7}"},
	"prove, a template that does not compile":     {line: "stencilctl policy prove -p prove/policies.yaml -f -", stdin: "{apiVersion: template.kubevirt.io/v1beta1, kind: VirtualMachineTemplate, metadata: {name: a}, spec: {virtualMachine: {metadata: {name: '${A}'}, spec: {runStrategy: Halted}}}}"},
	"prove, a policy that fails":                  {line: "stencilctl policy prove -p - -f prove/templates.yaml --param SSH_KEY=x", stdin: "{apiVersion: stencil.kubevirt.io/v1alpha1, kind: VirtualMachinePolicy, metadata: {name: fails}, spec: {failureMode: Allow, rego: 'package p\n\ndeny contains \"x\" if 1 / (8 - to_number(input.parameters.CORES)) > 2'}}"},
	"process":                                     {line: "stencilctl process -f templates/web.yaml -p NAME=web-1 -p TOKEN=t0ken"},
	"process, as JSON":                            {line: "stencilctl process -f templates/web.yaml --params-file values/web.env --target-namespace shop -o json"},
	"process, as a table":                         {line: "stencilctl process -f templates/web.yaml --params-file values/web.json -p TIER=front -o table"},
	"process, the name":                           {line: "stencilctl process -f - -p NAME=web-1 -o name", stdin: `{apiVersion: template.kubevirt.io/v1alpha1, kind: VirtualMachineTemplate, spec: {parameters: [{name: NAME}], virtualMachine: {metadata: {name: "${NAME}"}}}}`},
	"process, an unused parameter":                {line: "stencilctl process -f templates/web.yaml -p NAME=web-1 -p SPARE=x -o name"},
	"process, a file without -f":                  {line: "stencilctl process templates/web.yaml -p NAME=web-1 -p TOKEN=t0ken -o name"},
	"process, a file and -f":                      {line: "stencilctl process templates/web.yaml -f templates/web.yaml"},
	"process, bad values":                         {line: "stencilctl process -f templates/web.yaml --params-file values/web.yaml -p TIER=side -p PASWORD=secret"},
	"process, missing values":                     {line: "stencilctl process -f templates/web.yaml"},
	"process, nothing":                            {line: "stencilctl process"},
	"process, both":                               {line: "stencilctl process web -f templates/web.yaml"},
	"process, a broken template":                  {line: "stencilctl process -f templates/broken.yaml"},
	"process, an unknown field":                   {line: "stencilctl process -f templates/unknown.json"},
	"process, two templates":                      {line: "stencilctl process -f templates"},
	"process, no template":                        {line: "stencilctl process -f objects/good.yaml"},
	"process, no file":                            {line: "stencilctl process -f templates/none.yaml"},
	"process, a value without a name":             {line: "stencilctl process -f templates/web.yaml -p secret"},
	"process, a value twice":                      {line: "stencilctl process -f templates/web.yaml -p NAME=a -p NAME=b"},
	"process, a value twice in a file":            {line: "stencilctl process -f templates/web.yaml --params-file values/twice.env"},
	"process, a list as a value":                  {line: "stencilctl process -f templates/web.yaml --params-file values/list.yaml"},
	"process, no map of values":                   {line: "stencilctl process -f templates/web.yaml --params-file values/notamap.yaml"},
	"process, broken values":                      {line: "stencilctl process -f templates/web.yaml --params-file -", stdin: "{"},
	"process, all from standard input":            {line: "stencilctl process -f - --params-file -"},
	"process, no cluster":                         {line: "stencilctl process web --kubeconfig none"},
	"process, a name that is none":                {line: "stencilctl process Web_1 --server https://127.0.0.1:1"},
	"process, parameters":                         {line: "stencilctl process -f templates/web.yaml --print-params"},
	"process, parameters as YAML":                 {line: "stencilctl process -f templates/web.yaml --print-params -o yaml"},
	"process, names of parameters":                {line: "stencilctl process -f templates/web.yaml --print-params -o name"},
	"process, parameters and values":              {line: "stencilctl process -f templates/web.yaml --print-params -p NAME=web-1"},
	"lint":                                        {line: "stencilctl lint templates"},
	"lint, by the old name of a flag":             {line: "stencilctl lint templates/broken.yaml --format json"},
	"lint, by -f":                                 {line: "stencilctl lint -f templates/web.yaml"},
	"check, by -f":                                {line: "stencilctl policy check -f policies"},
	"eval, by old names of flags":                 {line: "stencilctl policy eval -f objects/vm.yaml --instancetype objects/instancetype.yaml --dry-run -p policies"},
	"diff, a file without -f":                     {line: "stencilctl diff machines/web-1.yaml -t templates/web.yaml"},
	"lint, good":                                  {line: "stencilctl lint templates/web.yaml"},
	"lint, warnings fail":                         {line: "stencilctl lint templates/web.yaml --fail-on warning"},
	"lint, advice fails":                          {line: "stencilctl lint - --fail-on advice", stdin: "{apiVersion: template.kubevirt.io/v1beta1, kind: VirtualMachineTemplate, metadata: {name: a}, spec: {virtualMachine: {metadata: {name: a}, spec: {runStrategy: Halted}}}}"},
	"lint, as JSON":                               {line: "stencilctl lint templates/broken.yaml -o json"},
	"lint, as SARIF":                              {line: "stencilctl lint templates/broken.yaml -o sarif"},
	"lint, on a terminal":                         {line: "stencilctl lint templates/unknown.json", colour: true},
	"lint, other types":                           {line: "stencilctl lint -", stdin: "\n---\n{apiVersion: template.kubevirt.io/v1, kind: VirtualMachineTemplate, spec: {parameters: 7}}"},
	"lint, a list of the cluster":                 {line: "stencilctl lint -", stdin: "apiVersion: v1\nkind: List\nitems:\n- apiVersion: template.kubevirt.io/v1beta1\n  kind: VirtualMachineTemplate\n  metadata:\n    name: a\n    annotations: {description: x}\n  spec:\n    virtualMachine:\n      metadata: {name: '${A}'}\n      spec: {runStrategy: Halted}\n"},
	"lint, nothing":                               {line: "stencilctl lint objects/good.yaml"},
	"lint, no file":                               {line: "stencilctl lint"},
	"lint, broken YAML":                           {line: "stencilctl lint -", stdin: "a: {"},
	"convert":                                     {line: "stencilctl convert -f openshift/parentheses.yaml --syntax parentheses"},
	"convert, many":                               {line: "stencilctl convert -f openshift -o name"},
	"convert, as JSON":                            {line: "stencilctl convert -f openshift/many.yaml,openshift/parentheses.yaml --syntax=parentheses -o json"},
	"convert, refused":                            {line: "stencilctl convert -f -", stdin: "{apiVersion: template.openshift.io/v1, kind: Template, metadata: {name: a}, objects: []}"},
	"convert, no Template":                        {line: "stencilctl convert -f objects"},
	"convert, nothing":                            {line: "stencilctl convert"},
	"convert, both":                               {line: "stencilctl convert rhel -f openshift"},
	"convert, sources":                            {line: "stencilctl convert --sources -f -", stdin: copying},
	"convert, names of sources":                   {line: "stencilctl convert --sources -f - -o name", stdin: copying},
	"convert, sources as JSON":                    {line: "stencilctl convert --sources -f - -o json", stdin: copying},
	"convert, sources that exist":                 {line: "stencilctl convert --sources -f -", stdin: copying + "---\n{apiVersion: cdi.kubevirt.io/v1beta1, kind: DataSource, metadata: {namespace: golden, name: fedora}, spec: {source: {pvc: {namespace: golden, name: rawhide}}}}"},
	"convert, sources without templates":          {line: "stencilctl convert --sources -f objects/good.yaml"},
	"convert, sources of nothing":                 {line: "stencilctl convert --sources"},
	"convert, sources by name":                    {line: "stencilctl convert --sources box"},
	"convert, sources of both":                    {line: "stencilctl convert --sources --stored -f openshift"},
	"convert, stored without sources":             {line: "stencilctl convert --stored"},
	"convert, another syntax":                     {line: "stencilctl convert -f openshift --syntax percent"},
	"convert, no cluster":                         {line: "stencilctl convert rhel --kubeconfig none"},
	"diff, two files":                             {line: "stencilctl diff -f machines/web-1.yaml -t templates/web.yaml"},
	"diff, on a terminal":                         {line: "stencilctl diff -f machines/web-1.yaml -t templates/web.yaml", colour: true},
	"diff, none":                                  {line: "stencilctl diff -f - -t templates/web.yaml -o yaml", stdin: "{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: web-1, labels: {tier: back}}, spec: {runStrategy: Halted, template: {spec: {domain: {cpu: {cores: 2}, devices: {}}, volumes: [{name: init, cloudInitNoCloud: {userData: 'password: correct horse, token: abcdefgh'}}]}}}}"},
	"diff, nothing":                               {line: "stencilctl diff"},
	"diff, both":                                  {line: "stencilctl diff web-1 -f machines/web-1.yaml"},
	"diff, both from the standard input":          {line: "stencilctl diff -f - -t -"},
	"diff, no template named":                     {line: "stencilctl diff -f objects/good.yaml"},
	"diff, not a machine":                         {line: "stencilctl diff -f templates/web.yaml -t templates/web.yaml"},
	"diff, malformed":                             {line: "stencilctl diff -f - -t templates/web.yaml", stdin: "{apiVersion: kubevirt.io/v1, kind: VirtualMachine, spec: 7}"},
	"diff, a sensitive place":                     {line: "stencilctl diff -f - -t templates/web.yaml", stdin: "{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: web-1, labels: {tier: back}}, spec: {runStrategy: Halted, template: {spec: {domain: {cpu: {cores: 2}, devices: {}}, volumes: [{name: init, cloudInitNoCloud: {userData: 'my password is hunter2'}}]}}}}"},
	"process, a sensitive value":                  {line: "stencilctl process -f templates/web.yaml -p NAME=web-1 -p PASSWORD=staple -p TOKEN=t0ken"},
	"process, no reference":                       {line: "stencilctl process -f templates/web.yaml -p NAME=web-1 -p TOKEN=t0ken --reference=false -o json"},
	"process, a namespace":                        {line: "stencilctl process -f - -n golden -p NAME=web-1", stdin: unplaced},
	"process, no namespace":                       {line: "stencilctl process -f - -p NAME=web-1", stdin: unplaced},
	"process, no name":                            {line: "stencilctl process -f - -n golden -p NAME=web-1", stdin: strings.Replace(unplaced, "name: web", "labels: {}", 1)},
	"process, no valid name":                      {line: "stencilctl process -f - -n golden -p NAME=web-1", stdin: strings.Replace(unplaced, "name: web", "name: Web_1", 1)},
	"process, not rendered here":                  {line: "stencilctl process web --reference=false"},
	"process, objects":                            {line: "stencilctl process -f - -p NAME=web-1 --target-namespace shop", stdin: accompanied},
	"process, objects as JSON":                    {line: "stencilctl process -f - -p NAME=web-1 -o json", stdin: accompanied},
	"process, objects as a table":                 {line: "stencilctl process -f - -p NAME=web-1 -o table", stdin: accompanied},
	"process, names of objects":                   {line: "stencilctl process -f - -p NAME=web-1 -o name", stdin: accompanied},
	"process, objects are not created":            {line: "stencilctl process -f - -p NAME=web-1 --create", stdin: accompanied},
	"lint, objects":                               {line: "stencilctl lint -", stdin: "{apiVersion: template.kubevirt.io/v1beta1, kind: VirtualMachineTemplate, metadata: {name: a, annotations: {description: x}}, spec: {virtualMachine: {metadata: {name: a}, spec: {runStrategy: Halted}}, objects: [{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {a: '${NMAE}'}}, {apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: b}}]}}"},
	"image, help":                                 {line: "kubectl-stencil image pin --help"},
	"image, an unknown command":                   {line: "stencilctl image ad fedora"},
	"image, no cluster":                           {line: "stencilctl image list --kubeconfig none"},
	"process, rules":                              {line: "stencilctl process -f templates/ruled.yaml -p CORES=1 -o name"},
	"process, rules are not satisfied":            {line: "stencilctl process -f templates/ruled.yaml -p CORES=9 -o name"},
	"process, rules are left out":                 {line: "stencilctl process -f templates/ruled.yaml -p CORES=9 -p SKIP=true -o name"},
}

func TestCommands(t *testing.T) {
	t.Chdir("testdata")
	for name, tc := range commands {
		t.Run(name, func(t *testing.T) {
			var out, errors bytes.Buffer
			streams := cli.Streams{In: strings.NewReader(tc.stdin), Out: &out, Err: &errors, Colour: tc.colour}
			code := run(t.Context(), strings.Fields(tc.line), streams)

			got := fmt.Sprintf("$ %s\n%s", tc.line, out.String())
			if errors.Len() > 0 {
				got += "--- standard error\n" + errors.String()
			}
			got += fmt.Sprintf("--- exit code %d\n", code)
			compare(t, name, got)
		})
	}
}

var scrubbed = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`("?microseconds"?: )\d+`), "${1}7"},
	{regexp.MustCompile(` time="[0-9.]+"`), ` time="0.000007"`},
	{regexp.MustCompile(`sha256:[0-9a-f]{64}`), "sha256:..."},
	{regexp.MustCompile(`stencilctl \S+ \(revision [^)]*\)`), "stencilctl VERSION (revision REVISION, GO)"},
	{regexp.MustCompile(`("client": \{\n +"version": )"[^"]*"(,\n +"revision": )"[^"]*"(,\n +"go": )"[^"]*"`), `$1"..."$2"..."$3"..."`},
	{regexp.MustCompile(`(?m)^  note policy \S+ took \d+ ms, .*\n`), ""},
}

// scrub replaces text that differs in each run.
func scrub(text string) string {
	for _, each := range scrubbed {
		text = each.pattern.ReplaceAllString(text, each.by)
	}
	return text
}

func TestFmtWrites(t *testing.T) {
	at := filepath.Join(t.TempDir(), "policy.yaml")
	crooked := testfile.Read(t, "testdata/unformatted/policy.yaml")
	if err := os.WriteFile(at, crooked, 0o600); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{at + "\n", ""} {
		var out bytes.Buffer
		if code := run(t.Context(), []string{"stencilctl", "policy", "fmt", "-w", at}, cli.Streams{Out: &out, Err: &out}); code != cli.ExitOK || out.String() != want {
			t.Errorf("run %d: exit code %d and output %q, want %q", i+1, code, out.String(), want)
		}
	}
	if info, err := os.Stat(at); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
}
