package pusher

import (
	"context"
	"errors"
	"path"
	"strings"

	"github.com/perfagent/perfagent/mlflow"
)

// sendArtifacts sends the files. What the store does not take becomes a note.
func (p *Plan) sendArtifacts(ctx context.Context) error {
	for _, a := range p.opts.Artifacts {
		data, err := a.Data(p.Run.ID)
		if err != nil {
			return err
		}
		err = p.client.UploadArtifact(ctx, p.Run, p.artifactPath(a.Name), a.ContentType, data)
		if _, refused := errors.AsType[*mlflow.ArtifactError](err); refused {
			p.Notes = append(p.Notes, err.Error())
		} else if err != nil {
			return err
		}
	}
	return nil
}

// claim returns the tag that gives a file its path in the run.
func (p *Plan) claim(name string) mlflow.Tag {
	return mlflow.Tag{Key: tagArtifact + name + "." + p.id.invocation, Value: p.artifactPath(name)}
}

// artifactPath returns a path in the run that no other recording's file has: the one that the file
// already has, or the plain one, or else one with the invocation.
func (p *Plan) artifactPath(name string) string {
	plain := "perfagent/" + name
	if p.Run == nil {
		return plain
	}
	own := tagArtifact + name + "." + p.id.invocation
	if claimed := p.Run.Tags[own]; claimed != "" {
		return claimed
	}
	if p.taken(own, plain) {
		return p.uniquePath(name)
	}
	return plain
}

func (p *Plan) uniquePath(name string) string {
	ext := path.Ext(name)
	return "perfagent/" + strings.TrimSuffix(name, ext) + "." + p.id.invocation + ext
}

// taken reports whether another recording has claimed a path. own is the key of our own claim.
func (p *Plan) taken(own, path string) bool {
	for key, value := range p.Run.Tags {
		if strings.HasPrefix(key, tagArtifact) && key != own && value == path {
			return true
		}
	}
	return false
}

// settlePaths checks, in a run that others may write to at this moment, whether another recording
// has claimed the same path. Then both give it up.
func (p *Plan) settlePaths(ctx context.Context) error {
	if !p.opts.Given || len(p.opts.Artifacts) == 0 || p.sentLive {
		return nil
	}

	run, err := p.client.Run(ctx, p.Run.ID)
	if err != nil {
		return err
	}
	p.Run = run
	for _, a := range p.opts.Artifacts {
		t := p.claim(a.Name)
		if !p.taken(t.Key, t.Value) || mlflow.CheckKey(t.Key) != nil {
			continue
		}
		t.Value = p.uniquePath(a.Name)
		if err := p.client.SetTag(ctx, run.ID, t); err != nil {
			return err
		}
		run.Tags[t.Key] = t.Value
	}
	return nil
}
