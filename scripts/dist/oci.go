//go:build !wheel

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// An ociStore collects the blobs of an OCI layout.
type ociStore struct{ blobs []file }

// ociLayout makes the container image as an archive for podman, skopeo, ctr and docker. For each platform, the image
// contains only the program.
func ociLayout(r *release) (file, error) {
	var store ociStore
	index := v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex, Annotations: labels(r)}
	for _, p := range platforms {
		manifest, err := store.image(r, p)
		if err != nil {
			return file{}, err
		}
		index.Manifests = append(index.Manifests, manifest)
	}

	image, err := store.add(v1.MediaTypeImageIndex, index)
	if err != nil {
		return file{}, err
	}
	image.Annotations = map[string]string{
		v1.AnnotationRefName:       "perfagent:" + r.version,
		"io.containerd.image.name": "localhost/perfagent:" + r.version,
	}
	top := v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex, Manifests: []v1.Descriptor{image}}
	files, err := store.layout(top)
	if err != nil {
		return file{}, err
	}

	var b bytes.Buffer
	err = writeTar(&b, files, r.time)

	return file{name: fmt.Sprintf("perfagent_%s_oci.tar", r.version), data: b.Bytes()}, err
}

// labels returns the annotations that registries show.
func labels(r *release) map[string]string {
	return map[string]string{
		v1.AnnotationTitle: "perfagent", v1.AnnotationDescription: summary, v1.AnnotationVersion: r.version,
		v1.AnnotationLicenses: "MIT", v1.AnnotationURL: homepage, v1.AnnotationSource: homepage,
		v1.AnnotationCreated: r.time.Format("2006-01-02T15:04:05Z"),
	}
}

// image adds the image of one platform and returns its manifest.
func (s *ociStore) image(r *release, p platform) (v1.Descriptor, error) {
	var plain, packed bytes.Buffer
	if err := writeTar(&plain, []file{r.programs[p.go_]}, r.time); err != nil {
		return v1.Descriptor{}, err
	}
	err := compressed(&packed, func(w io.Writer) error { _, err := w.Write(plain.Bytes()); return err })
	if err != nil {
		return v1.Descriptor{}, err
	}
	layer := s.addBlob(v1.MediaTypeImageLayerGzip, packed.Bytes())

	where := v1.Platform{OS: "linux", Architecture: p.go_}
	config, err := s.add(v1.MediaTypeImageConfig, v1.Image{
		Created: &r.time, Platform: where,
		Config:  v1.ImageConfig{Entrypoint: []string{"/perfagent"}, Labels: labels(r)},
		RootFS:  v1.RootFS{Type: "layers", DiffIDs: []digest.Digest{digest.FromBytes(plain.Bytes())}},
		History: []v1.History{{Created: &r.time, CreatedBy: "make dist"}},
	})
	if err != nil {
		return v1.Descriptor{}, err
	}

	manifest, err := s.add(v1.MediaTypeImageManifest, v1.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest,
		Config: config, Layers: []v1.Descriptor{layer}, Annotations: labels(r),
	})
	manifest.Platform = &where

	return manifest, err
}

// add adds value as a JSON blob.
func (s *ociStore) add(mediaType string, value any) (v1.Descriptor, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return v1.Descriptor{}, err
	}

	return s.addBlob(mediaType, data), nil
}

// addBlob adds a blob and returns its descriptor.
func (s *ociStore) addBlob(mediaType string, data []byte) v1.Descriptor {
	d := v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(data), Size: int64(len(data))}
	s.blobs = append(s.blobs, file{name: "blobs/sha256/" + d.Digest.Encoded(), data: data})

	return d
}

// layout returns the files of the layout.
func (s *ociStore) layout(top v1.Index) ([]file, error) {
	index, err := json.Marshal(top)
	if err != nil {
		return nil, err
	}
	version, err := json.Marshal(v1.ImageLayout{Version: v1.ImageLayoutVersion})
	if err != nil {
		return nil, err
	}

	return append(s.blobs, file{name: v1.ImageIndexFile, data: index}, file{name: v1.ImageLayoutFile, data: version}), nil
}
