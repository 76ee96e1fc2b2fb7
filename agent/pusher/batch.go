package pusher

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/perfagent/perfagent/mlflow"
)

// maxItems is MLflow's limit of what one request may hold. Points of ours are too short
// to reach its limit of bytes, but long tags are not.
const (
	maxItems      = 1000
	maxTagsBeside = 100_000 // bytes of tags that may stand in a request with points
)

// pack fills requests: first the metrics and tags, then whole moments.
func pack(metrics []mlflow.Metric, tags []mlflow.Tag, moments []moment) []mlflow.Batch {
	out := mlflow.Split(mlflow.Batch{Metrics: metrics, Tags: tags})
	var open mlflow.Batch
	if n := len(out); n > 0 && tagBytes(out[n-1].Tags) < maxTagsBeside {
		open, out = out[n-1], out[:n-1]
	}
	for _, m := range moments {
		if len(open.Metrics)+len(open.Tags)+len(m.points) > maxItems {
			out = append(out, open)
			open = mlflow.Batch{}
		}
		open.Metrics = append(open.Metrics, m.points...)
	}
	if len(open.Metrics)+len(open.Tags) > 0 {
		out = append(out, open)
	}
	return out
}

func tagBytes(tags []mlflow.Tag) (n int) {
	for _, t := range tags {
		n += len(t.Key) + len(t.Value)
	}
	return n
}

// sortedOut is of how many values every version of MLflow finds out which it has already.
const sortedOut = 100

// logBatch sends a request. On a database MLflow 2.x and the first 3.x refuse a larger one
// of which they have a part: because another process sent that, because an answer was lost,
// or because another recording has the same points. Then it is sent in pieces, which may
// have parts of a moment. Its last point, the anchor, comes last in that, too.
func logBatch(ctx context.Context, c *mlflow.Client, runID string, b mlflow.Batch) error {
	err := c.LogBatch(ctx, runID, b)
	if !partlyThere(err) {
		return err
	}
	for piece := range slices.Chunk(b.Metrics, sortedOut) {
		if err := logPiece(ctx, c, runID, piece); err != nil {
			return err
		}
	}
	if len(b.Tags) == 0 {
		return nil
	}
	return c.LogBatch(ctx, runID, mlflow.Batch{Tags: b.Tags})
}

// logPiece sends a piece, again where another process sends the same at this very moment.
func logPiece(ctx context.Context, c *mlflow.Client, runID string, piece []mlflow.Metric) error {
	for try := time.Duration(1); ; try++ {
		err := c.LogBatch(ctx, runID, mlflow.Batch{Metrics: piece})
		if !partlyThere(err) || try == 4 {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(try * 50 * time.Millisecond):
		}
	}
}

// partlyThere tells whether a database refused points because it has some of them.
func partlyThere(err error) bool {
	var e *mlflow.Error
	return errors.As(err, &e) && (strings.Contains(e.Message, "IntegrityError") || strings.Contains(e.Message, "UniqueViolation"))
}
