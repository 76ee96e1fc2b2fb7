package reporter

import (
	"maps"
	"slices"

	"github.com/perfagent/perfagent/collector"
)

// alignGPUs gives each GPU the same place in all pieces: metrics, keys and series have it in their names. Pieces that
// list the devices in the same order, as those of one host do, stay as they are.
func (c *combination) alignGPUs() {
	all := c.gpus()
	for _, p := range c.pieces {
		moved := false
		places := make([]int, len(p.GPUs))
		for i, g := range p.GPUs {
			places[i] = slices.IndexFunc(all, g.same)
			moved = moved || places[i] != i
		}
		if moved {
			p.moveGPUs(places)
		}
	}
}

// moveGPUs gives the device at place i the place places[i].
func (p *piece) moveGPUs(places []int) {
	n := *p.Node
	n.Metrics, n.Summaries, n.Envelope = maps.Clone(n.Metrics), maps.Clone(n.Summaries), maps.Clone(n.Envelope)
	n.Samples = Samples{Keys: slices.Clone(n.Samples.Keys), Columns: n.Samples.Columns}
	for i := range min(len(places), collector.MaxGPUs) {
		for _, m := range gpuMetrics(i) {
			delete(n.Metrics, m.Name)
		}
		for k := range collector.GPUKey(collector.NumGPUKeys) {
			key := collector.GPUColumn(i, k).Key()
			delete(n.Summaries, key)
			delete(n.Envelope, key)
		}
	}

	for i, to := range places {
		if i >= collector.MaxGPUs || to >= collector.MaxGPUs {
			continue
		}
		for _, m := range GPUMetrics() {
			move(n.Metrics, p.Metrics, GPUMetricName(m.Name, to), GPUMetricName(m.Name, i))
		}
		for k := range collector.GPUKey(collector.NumGPUKeys) {
			key, old := collector.GPUColumn(to, k).Key(), collector.GPUColumn(i, k).Key()
			move(n.Summaries, p.Summaries, key, old)
			move(n.Envelope, p.Envelope, key, old)
			if at := slices.Index(p.Samples.Keys, old); at >= 0 {
				n.Samples.Keys[at] = key
			}
		}
	}
	p.Node = &n
}

func move[E any](to, from map[string]E, key, old string) {
	if e, ok := from[old]; ok {
		to[key] = e
	}
}
