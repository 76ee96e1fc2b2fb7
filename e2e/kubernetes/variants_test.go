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

// transcripts are the parts of docs/kubernetes.md that the cluster writes.
var transcripts = []string{"kubernetes", "kubernetes-oom"}

// variants maps the names of further Jobs for the cluster to the commands of their Pods.
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

// imageNames returns the names that kustomization.yaml gives to the images of deploy/kubernetes.
func imageNames(t *testing.T) map[string]string {
	t.Helper()
	names := make(map[string]string)
	for _, m := range imageNamed.FindAllStringSubmatch(clitest.Read(t, testenv.Repository(t, "deploy/kubernetes/kustomization.yaml")), -1) {
		names[m[1]] = m[2] + ":" + m[3]
	}
	if names["perfagent"] == "" || names["job"] == "" {
		t.Fatalf("kustomization.yaml names the images %v", names)
	}

	return names
}

// variant returns a manifest of deploy/kubernetes as users change it: with another name and command, and the images in
// kustomization.yaml.
func variant(t *testing.T, file, name string) string {
	t.Helper()
	text := clitest.Read(t, testenv.Repository(t, "deploy/kubernetes/"+file))
	old := nameOfJob.FindStringSubmatch(text)
	if old == nil || len(wordsOfJob.FindAllString(text, -1)) != 1 || len(imagesUsed.FindAllString(text, -1)) != 2 {
		t.Fatalf("%s is not one Job with a command in its args and two images", file)
	}
	text = strings.ReplaceAll(text, old[1], name)
	text = wordsOfJob.ReplaceAllString(text, "${1}"+strings.ReplaceAll(variants[name], "$", "$$"))

	return imagesUsed.ReplaceAllStringFunc(text, func(line string) string {
		before, image, _ := strings.Cut(line, "image: ")
		return before + "image: " + imageNames(t)[image]
	})
}

// The variants can be made of the manifests. The test on a cluster would notice too late: it is started by hand.
func TestVariants_CanBeMadeOfManifests(t *testing.T) {
	for name, words := range variants {
		file := "indexed-job.yaml"
		if name == "hungry" {
			file = "job.yaml"
		}
		text := variant(t, file, name)
		for _, want := range []string{"\n  name: " + name + "\n", " args: " + words + "\n", "image: " + imageNames(t)["job"] + "\n"} {
			if strings.Count(text, want) != 1 {
				t.Errorf("%s has not one %q:\n%s", name, want, text)
			}
		}
	}
}

// docs/kubernetes.md shows what the test on a cluster wrote, and no manifest has been added or renamed since.
func TestTranscripts_AreCurrent(t *testing.T) {
	doc := clitest.Read(t, testenv.Repository(t, kubernetesDoc))
	for _, name := range transcripts {
		_, rest, _ := strings.Cut(doc, "<!-- "+name+":begin -->\n```console\n$ ")
		if text, _, closed := strings.Cut(rest, "```\n<!-- "+name+":end -->"); !closed || text == "" {
			t.Errorf("%s has no transcript %s: make e2e-kubernetes", kubernetesDoc, name)
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
		t.Errorf("%s shows %q, the manifests have %q: make e2e-kubernetes", kubernetesDoc, made, want)
	}
	version := regexp.MustCompile(`(?m)^\s+k8s.io/kubernetes v(\d+\.\d+)\.`).FindStringSubmatch(clitest.Read(t, testenv.Repository(t, "scripts/kubernetes/go.mod")))
	if version == nil || !strings.Contains(doc, "builds Kubernetes "+version[1]+" ") {
		t.Errorf("%s is not about Kubernetes %v: make e2e-kubernetes", kubernetesDoc, version)
	}
}
