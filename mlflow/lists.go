package mlflow

import "fmt"

// Bounds of what is believed of a server. The first two are of memory, estimated; a history of the most points that are
// taken is well within the second.
const (
	keepLists   = 32 << 20  // bytes of what one answer has, or all pages of one call
	keepHistory = 256 << 20 // of all points of a history, and of all runs where a caller wants all

	maxEntries = 200_000   // metrics and tags of a run; a report of 1000 nodes has 21,000
	maxPoints  = 2_000_000 // of a metric's history: 2.x servers send all at once
)

// About how many bytes of memory an entry takes beside its texts, with what slices and maps have in reserve.
const (
	runCost    = 512
	metricCost = 96 // in a map
	tagCost    = 64
	itemCost   = 128 // in a slice: an experiment, a file
	pointCost  = 96
)

// nextToken is where answers in pages name the next one.
const nextToken = "next_page_token"

// tooMany is the error for a list that is longer than what was asked for.
func tooMany(most int, what string) error {
	return excess(fmt.Sprintf("the answer is not MLflow's: there are more than %d %s in it", most, what))
}

// runOne is an answer with one run.
type runOne struct{ run Run }

func (o *runOne) read(s *stream) (err error) {
	o.run = Run{}
	return s.object(func(key string) error {
		if key == "run" {
			o.run, err = readRun(s)
			return err
		}
		return s.skip()
	})
}

// runList is an answer with at most so many runs.
type runList struct {
	most int
	runs []Run
	next string
}

func (l *runList) read(s *stream) error {
	l.runs, l.next = nil, ""
	return s.object(func(key string) error {
		switch key {
		case "runs":
			return s.list(func() error {
				if len(l.runs) >= l.most {
					return tooMany(l.most, "runs")
				}
				r, err := readRun(s)
				l.runs = append(l.runs, r)
				return err
			})
		case nextToken:
			return s.value(&l.next)
		}
		return s.skip()
	})
}

// readRun reads a run with its entries.
func readRun(s *stream) (Run, error) {
	var info infoAnswer
	d := runData{tags: map[string]string{}, metrics: map[string]Metric{}}
	err := s.object(func(key string) error {
		switch key {
		case "info":
			return s.value(&info)
		case "data":
			return d.read(s)
		}
		return s.skip()
	})
	r := info.run()
	r.Tags, r.Metrics = d.tags, d.metrics
	if err == nil {
		err = s.take(runCost + len(r.ID) + len(r.Name) + len(r.ExperimentID) + len(r.Status) + len(r.ArtifactURI) +
			len(r.LifecycleStage))
	}
	return r, err
}

// runData is what a run has any number of.
type runData struct {
	tags    map[string]string
	metrics map[string]Metric
	entries int // as the answer has them, which may name one twice
}

func (d *runData) read(s *stream) error {
	return s.object(func(key string) error {
		switch key {
		case "metrics":
			return s.list(func() error { return d.metric(s) })
		case "tags":
			return s.list(func() error { return d.tag(s) })
		}
		return s.skip()
	})
}

func (d *runData) metric(s *stream) error {
	var m metricAnswer
	if err := d.entry(s, &m); err != nil {
		return err
	}
	d.metrics[m.Key] = m.metric()
	return s.take(metricCost + len(m.Key))
}

func (d *runData) tag(s *stream) error {
	var t struct {
		Key   string `json:"key"`
		Value string `json:"value"`
	}
	if err := d.entry(s, &t); err != nil {
		return err
	}
	d.tags[t.Key] = t.Value
	return s.take(tagCost + len(t.Key) + len(t.Value))
}

func (d *runData) entry(s *stream, v any) error {
	if d.entries++; d.entries > maxEntries {
		return tooMany(maxEntries, "metrics and tags of one run")
	}
	return s.value(v)
}

// experimentList is an answer with at most so many experiments.
type experimentList struct {
	most        int
	experiments []Experiment
	next        string
}

func (l *experimentList) read(s *stream) error {
	l.experiments, l.next = nil, ""
	return s.object(func(key string) error {
		switch key {
		case "experiments":
			return s.list(func() error { return l.add(s) })
		case nextToken:
			return s.value(&l.next)
		}
		return s.skip()
	})
}

func (l *experimentList) add(s *stream) error {
	if len(l.experiments) >= l.most {
		return tooMany(l.most, "experiments")
	}
	var a experimentAnswer
	if err := s.value(&a); err != nil {
		return err
	}
	e := a.experiment()
	l.experiments = append(l.experiments, e)
	return s.take(itemCost + len(e.ID) + len(e.Name) + len(e.ArtifactLocation) + len(e.LifecycleStage))
}

// chunk is how many points are in one slice while it is not known how many there are: a slice that grows to 2,000,000
// leaves several times its own size to the garbage collector.
const chunk = 1 << 16

// pointList is an answer with at most so many points of a metric.
type pointList struct {
	key    string
	most   int
	count  int
	points [][]Metric // of up to chunk each
	next   string
}

func (l *pointList) read(s *stream) error {
	l.count, l.points, l.next = 0, nil, ""
	return s.object(func(key string) error {
		switch key {
		case "metrics":
			return s.list(func() error { return l.add(s) })
		case nextToken:
			return s.value(&l.next)
		}
		return s.skip()
	})
}

func (l *pointList) add(s *stream) error {
	if l.count >= l.most {
		return tooMany(maxPoints, "points")
	}
	var a metricAnswer
	if err := s.value(&a); err != nil {
		return err
	}
	cost := pointCost + len(a.Key)
	if a.Key == l.key {
		a.Key, cost = l.key, pointCost // one text for all of them
	}
	if l.count%chunk == 0 {
		l.points = append(l.points, nil)
	}
	last := &l.points[len(l.points)-1]
	*last = append(*last, a.metric())
	l.count++
	return s.take(cost)
}

// fileList is an answer with a folder's files.
type fileList struct {
	files []File
	next  string
}

func (l *fileList) read(s *stream) error {
	l.files, l.next = nil, ""
	return s.object(func(key string) error {
		switch key {
		case "files":
			return s.list(func() error { return l.add(s) })
		case nextToken:
			return s.value(&l.next)
		}
		return s.skip()
	})
}

func (l *fileList) add(s *stream) error {
	var f struct {
		Path  string  `json:"path"`
		IsDir bool    `json:"is_dir"`
		Size  integer `json:"file_size"`
	}
	if err := s.value(&f); err != nil {
		return err
	}
	l.files = append(l.files, File{Path: f.Path, IsDir: f.IsDir, Size: int64(f.Size)})
	return s.take(itemCost + len(f.Path))
}
