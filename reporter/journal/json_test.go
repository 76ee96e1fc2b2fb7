package journal

import (
	"math/rand/v2"
	"testing"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/plainjson"
	"github.com/perfagent/perfagent/internal/reportertest"
)

// Whatever a line has, it is what package json makes of it.
func TestLines_AreThoseOfPackageJSON(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 1))
		var (
			head   Head
			snap   snapshot
			state  state
			told   said
			table  processTable
			signal collector.Signal
		)
		for _, v := range []any{&head, &snap, &state, &told, &table, &signal} {
			reportertest.Fill(random, v)
		}
		for _, line := range []struct {
			value any
			write func(w *plainjson.Writer)
		}{
			{&head, head.writeJSON}, {&snap, snap.writeJSON}, {&state, state.writeJSON}, {&told, told.writeJSON},
			{table, table.writeJSON}, {signal, func(w *plainjson.Writer) { writeCollectorSignal(w, &signal) }},
		} {
			want, err := plainjson.Marshal(line.value)
			if err != nil {
				t.Fatal(err)
			}
			var w plainjson.Writer
			if line.write(&w); w.Err != nil || string(w.Out) != string(want) {
				t.Fatalf("seed %d: %T is\n%s, want\n%s (%v)", seed, line.value, w.Out, want, w.Err)
			}
		}
	}
}
