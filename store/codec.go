package store

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"time"
)

// A codec converts objects to and from their stored form.
type codec interface {
	encode(data []byte) (stored []byte, err error)
	decode(stored []byte) (data []byte, err error)
}

// plainCodec stores objects unchanged.
type plainCodec struct{}

func (plainCodec) encode(data []byte) ([]byte, error)   { return data, nil }
func (plainCodec) decode(stored []byte) ([]byte, error) { return stored, nil }

// gzipCodec compresses objects, for servers that keep them in memory. The gzip header has the time of the put.
type gzipCodec struct{}

func (gzipCodec) encode(data []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	w.ModTime = time.Now()
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	err = w.Close()

	return out.Bytes(), err
}

// decode unpacks at most MaxSize bytes, because a small object may expand to a huge one.
func (gzipCodec) decode(stored []byte) ([]byte, error) {
	if len(stored) == 0 {
		return nil, errors.New("it is empty")
	}
	r, err := gzip.NewReader(bytes.NewReader(stored))
	if err != nil {
		return nil, fmt.Errorf("it is not an object of perfagent: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(r, MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("it is damaged: %w", err)
	}
	if len(data) > MaxSize {
		return nil, fmt.Errorf("it is too large: more than %d MiB when unpacked", MaxSize>>20)
	}
	return data, nil
}
