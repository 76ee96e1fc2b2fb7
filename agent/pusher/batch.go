package pusher

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/perfagent/perfagent/mlflow"
)

const (
	// maxItems is MLflow's limit for one request.
	maxItems = 1000

	// maxTagBytes limits the tags in a request with points. Our points are too short to reach
	// MLflow's limit in bytes, but long tags are not.
	maxTagBytes = 100_000
)

// pack fills requests: first with the metrics and tags, then with whole windows.
func pack(metrics []mlflow.Metric, tags []mlflow.Tag, windows []window) []mlflow.Batch {
	out := mlflow.Split(mlflow.Batch{Metrics: metrics, Tags: tags})
	var open mlflow.Batch
	if n := len(out); n > 0 && tagBytes(out[n-1].Tags) < maxTagBytes {
		open, out = out[n-1], out[:n-1]
	}

	for _, w := range windows {
		if len(open.Metrics)+len(open.Tags)+len(w.points) > maxItems {
			out = append(out, open)
			open = mlflow.Batch{}
		}
		open.Metrics = append(open.Metrics, w.points...)
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

// maxDeduplicated is the number of points in a request that every version of MLflow compares with
// those that it has.
const maxDeduplicated = 100

// logBatch sends a request. On a database, MLflow 2.x and the first 3.x refuse a larger one of
// which they have a part: because another process sent that, because an answer was lost, or because
// another recording has the same points. Then it is sent in pieces, which may split a window. The
// last point of the request, the anchor, is then the last of all, too.
func logBatch(ctx context.Context, c *mlflow.Client, runID string, b mlflow.Batch) error {
	err := c.LogBatch(ctx, runID, b)
	if !partlyStored(err) {
		return err
	}

	for piece := range slices.Chunk(b.Metrics, maxDeduplicated) {
		if err := logPiece(ctx, c, runID, piece); err != nil {
			return err
		}
	}
	if len(b.Tags) == 0 {
		return nil
	}
	return c.LogBatch(ctx, runID, mlflow.Batch{Tags: b.Tags})
}

// logPiece sends a piece. It tries again if another process sends the same one at this moment.
func logPiece(ctx context.Context, c *mlflow.Client, runID string, piece []mlflow.Metric) error {
	for try := time.Duration(1); ; try++ {
		err := c.LogBatch(ctx, runID, mlflow.Batch{Metrics: piece})
		if !partlyStored(err) || try == 4 {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(try * 50 * time.Millisecond):
		}
	}
}

// partlyStored reports whether a database refused points because it has some of them.
func partlyStored(err error) bool {
	e, ok := errors.AsType[*mlflow.Error](err)
	return ok && (strings.Contains(e.Message, "IntegrityError") || strings.Contains(e.Message, "UniqueViolation"))
}
