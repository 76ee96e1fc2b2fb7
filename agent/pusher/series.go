package pusher

import (
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/collector"
)

// A Series describes one time series below system/<node>/. docs/mlflow.md lists them all.
type Series struct {
	Name string

	columns   []collector.Column // their values are added up
	reduction reduction
	scale     float64 // factor of the columns' values; 0 means 1
}

// A reduction is how the samples of a window become one point.
type reduction int

const (
	mean reduction = iota // weighted by time
	peak                  // the greatest value
	last                  // the value at the end, for counters
)

// megabyte converts MiB to MLflow's unit, 10^6 bytes.
const megabyte = collector.MiB / 1e6

// AllSeries returns the series of the host and of the job, without GPUs. No name is the folder of another.
func AllSeries() []Series { return append(hostSeries(), columnSeries(false)...) }

// hostSeries returns the series that every node has.
func hostSeries() []Series {
	return append(columnSeries(true),
		Series{Name: "network_receive_megabytes", reduction: last, scale: megabyte,
			columns: []collector.Column{collector.NetExtRecv, collector.NetLoRecv}},
		Series{Name: "network_transmit_megabytes", reduction: last, scale: megabyte,
			columns: []collector.Column{collector.NetExtSent, collector.NetLoSent}})
}

// columnSeries returns the series of the columns that every node has or, if always is false, of the other columns: the
// job and its limits, delays of tasks, and devices other than GPUs. Of these, a node has the ones that were measured.
func columnSeries(always bool) []Series {
	var out []Series
	for c := range collector.NumColumns {
		row := c.Info()
		if row.MLflow == "" || row.Always != always {
			continue
		}
		s := newSeries(row)
		s.columns = []collector.Column{c}
		out = append(out, s)
		if row.MLflowPeak {
			s.Name, s.reduction = s.Name+"_max", peak
			out = append(out, s)
		}
	}
	return out
}

// newSeries returns the series of a column's mean, in the unit of MLflow's system metrics.
func newSeries(row collector.ColumnInfo) Series {
	s := Series{Name: row.MLflow}
	if row.Unit == collector.Mebibytes || row.Unit == collector.MebibytesPerSecond {
		s.scale = megabyte
	}
	return s
}

// A gpuSeries is a series that each GPU has.
type gpuSeries struct {
	Series
	key collector.GPUKey

	// share is the bound that a relative value is a share of, or NoBound if the value is absolute.
	share collector.Bound
}

// A gpuCapacity has the known limits of a GPU. NaN and 0 mean unknown.
type gpuCapacity struct{ memoryMB, powerLimitWatts float64 }

// gpuTable returns the series that each GPU of a node has. {i} in their names is the position of the device among the
// node's GPUs, from 0.
func gpuTable() []gpuSeries {
	var table []gpuSeries
	for key := range collector.GPUKey(collector.NumGPUKeys) {
		row := key.Info()
		s := gpuSeries{key: key, Series: newSeries(row)}
		table = append(table, s)
		if row.MLflowShare == "" {
			continue
		}
		s.Name, s.share = row.MLflowShare, row.Bound
		table = append(table, s)
	}
	return table
}

// forDevice returns the series of GPU i, which is d. ok is false if the value is a share of an unknown bound.
func (s gpuSeries) forDevice(i int, d gpuCapacity) (series Series, ok bool) {
	series = s.Series
	series.Name = strings.Replace(series.Name, "{i}", strconv.Itoa(i), 1)
	series.columns = []collector.Column{collector.GPUColumn(i, s.key)}
	if s.share == collector.NoBound {
		return series, true
	}
	whole := d.powerLimitWatts
	if s.share == collector.BoundDeviceMemory {
		whole = d.memoryMB
	}
	series.scale = 100 / whole
	return series, whole > 0
}

// seriesPrefix begins the names of all series.
const seriesPrefix = "system/"

// folder returns the folder of a node's series.
func folder(node string) string { return seriesPrefix + node + "/" }
