//go:build e2e

package kubernetes

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/testenv"
)

const kubernetesDoc = "docs/kubernetes.md"

// transcripts lists the parts of docs/kubernetes.md that the test on a cluster writes.
var transcripts = []string{"kubernetes", "kubernetes-oom"}

// variants maps the names of additional Jobs to the commands of their Pods.
var variants = map[string]string{
	"hungry":  `[dd, if=/dev/zero, of=/dev/null, bs=300M, count=1]`,
	"failing": `[sh, -c, "[ $JOB_COMPLETION_INDEX = 0 ] && exec sleep 600; until [ -s /reports/failing/node-0.jsonl ]; do sleep 1; done; exit 7"]`,
	"lost":    `[sh, -c, "[ $JOB_COMPLETION_INDEX = 1 ] && exec sleep 600; until [ -e /reports/powerless ]; do sleep 1; done"]`,
}

var (
	nameOfJob  = regexp.MustCompile(`(?m)^kind: Job\nmetadata:\n  name: (.+)$`)
	wordsOfJob = regexp.MustCompile(`(?m)^( +args: )\[sh, .*\]$`)
	imagesUsed = regexp.MustCompile(`(?m)^ +image: (perfagent|job)$`)
	imageNamed = regexp.MustCompile(`(?m)^  - name: (\w+)\n    newName: (\S+)\n    newTag: (\S+)$`)
)

// imageNames returns the image names that kustomization.yaml substitutes, by their names in deploy/kubernetes.
func imageNames(t *testing.T) map[string]string {
	t.Helper()
	names := make(map[string]string)
	for _, m := range imageNamed.FindAllStringSubmatch(clitest.Read(t, testenv.Repository(t, "deploy/kubernetes/kustomization.yaml")), -1) {
		names[m[1]] = m[2] + ":" + m[3]
	}
	if names["perfagent"] == "" || names["job"] == "" {
		t.Fatalf("images in kustomization.yaml: %v, want perfagent and job", names)
	}

	return names
}

// variant returns a manifest of deploy/kubernetes with the changes that users make: another name and command, and the
// images in kustomization.yaml.
func variant(t *testing.T, file, name string) string {
	t.Helper()
	text := clitest.Read(t, testenv.Repository(t, "deploy/kubernetes/"+file))
	old := nameOfJob.FindStringSubmatch(text)
	if old == nil || len(wordsOfJob.FindAllString(text, -1)) != 1 || len(imagesUsed.FindAllString(text, -1)) != 2 {
		t.Fatalf("%s does not have exactly one Job with a command in its args and two images", file)
	}
	text = strings.ReplaceAll(text, old[1], name)
	text = wordsOfJob.ReplaceAllString(text, "${1}"+strings.ReplaceAll(variants[name], "$", "$$"))

	return imagesUsed.ReplaceAllStringFunc(text, func(line string) string {
		before, image, _ := strings.Cut(line, "image: ")
		return before + "image: " + imageNames(t)[image]
	})
}

// All variants can be made from the manifests. The test on a cluster would detect a failure too late, because it is run
// only by hand.
func TestVariants_CanBeMadeFromManifests(t *testing.T) {
	for name, words := range variants {
		file := "indexed-job.yaml"
		if name == "hungry" {
			file = "job.yaml"
		}
		text := variant(t, file, name)
		for _, want := range []string{"\n  name: " + name + "\n", " args: " + words + "\n", "image: " + imageNames(t)["job"] + "\n"} {
			if strings.Count(text, want) != 1 {
				t.Errorf("%s does not contain %q exactly once:\n%s", name, want, text)
			}
		}
	}
}

// docs/kubernetes.md contains the transcripts of the test on a cluster, and no manifest has been added or renamed
// since.
func TestTranscripts_AreCurrent(t *testing.T) {
	doc := clitest.Read(t, testenv.Repository(t, kubernetesDoc))
	for _, name := range transcripts {
		_, rest, _ := strings.Cut(doc, "<!-- "+name+":begin -->\n```console\n$ ")
		if text, _, closed := strings.Cut(rest, "```\n<!-- "+name+":end -->"); !closed || text == "" {
			t.Errorf("%s lacks the transcript %s: run make e2e-kubernetes", kubernetesDoc, name)
		}
	}
	var made []string
	for _, m := range regexp.MustCompile(`(?m)^(\w+)(?:\.\w+)?/(\S+) created$`).FindAllStringSubmatch(doc, -1) {
		made = append(made, m[1]+" "+m[2])
	}
	var want []string
	kustomization := clitest.Read(t, testenv.Repository(t, "deploy/kubernetes/kustomization.yaml"))
	for _, m := range regexp.MustCompile(`(?m)^  - (\S+\.yaml)$`).FindAllStringSubmatch(kustomization, -1) {
		text := clitest.Read(t, testenv.Repository(t, "deploy/kubernetes/"+m[1]))
		for _, m := range regexp.MustCompile(`(?m)^kind: (\w+)\nmetadata:\n  name: (\S+)$`).FindAllStringSubmatch(text, -1) {
			want = append(want, strings.ToLower(m[1])+" "+m[2])
		}
	}
	slices.Sort(made)
	slices.Sort(want)
	if !slices.Equal(made, want) {
		t.Errorf("%s shows %q, want %q as in the manifests: run make e2e-kubernetes", kubernetesDoc, made, want)
	}
	version := regexp.MustCompile(`(?m)^\s+k8s.io/kubernetes v(\d+\.\d+)\.`).FindStringSubmatch(clitest.Read(t, testenv.Repository(t, "scripts/kubernetes/go.mod")))
	if version == nil || !strings.Contains(doc, "builds Kubernetes "+version[1]+" ") {
		t.Errorf("%s does not mention Kubernetes %v: run make e2e-kubernetes", kubernetesDoc, version)
	}
}
