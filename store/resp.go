package store

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
)

// Limits of a response: bytes of a line, items of a list, and depth of nested lists.
const (
	maxLine  = 64 << 10
	maxItems = 1 << 20
	maxDepth = 4

	valueSize = 16 // assumed memory of a value in a list, in bytes
)

// A redisError is an error response of a Redis server: "NOAUTH Authentication required."
type redisError string

// maxMessage limits how many bytes of a server's error message are shown.
const maxMessage = 200

// Error implements error.
func (e redisError) Error() string {
	if e.code() == "MOVED" || e.code() == "ASK" {
		return "a Redis cluster is not supported: name the node that has the key"
	}
	return "the server responds: " + text.Printable(text.Clip(string(e), maxMessage))
}

// code returns the first word, which is in capitals, or ERR if there is none.
func (e redisError) code() string {
	code, _, _ := strings.Cut(string(e), " ")
	if code == "" || strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return "ERR"
	}
	return code
}

// redact returns e, without its message if that repeats one of secrets.
func (e redisError) redact(secrets ...string) redisError {
	for _, secret := range secrets {
		if secret != "" && strings.Contains(string(e), secret) {
			return redisError(e.code() + ", in a message that repeats the user or the password")
		}
	}
	return e
}

// isTemporary reports whether the server may respond differently later.
func (e redisError) isTemporary() bool {
	passing := []string{"LOADING", "BUSY", "OOM", "READONLY", "TRYAGAIN", "MASTERDOWN", "NOREPLICAS", "MISCONF"}
	return slices.Contains(passing, e.code())
}

// errProtocol is the error for a response that is not in the Redis serialization protocol.
var errProtocol = errors.New("the response is not from a Redis server")

// appendCommand appends the command in words to out, in RESP2
// (https://redis.io/docs/latest/develop/reference/protocol-spec/).
func appendCommand(out []byte, words ...string) []byte {
	out = fmt.Appendf(out, "*%d\r\n", len(words))
	for _, w := range words {
		out = fmt.Appendf(out, "$%d\r\n", len(w))
		out = append(append(out, w...), "\r\n"...)
	}
	return out
}

// A responseReader reads the response to a command.
type responseReader struct {
	in   *bufio.Reader
	left int64 // bytes of memory that the response may still use, with all nested lists
}

// readResponse reads a response: a string, an int64, a list of responses, nil, or a redisError. After an error, the
// connection cannot be used again.
func readResponse(in *bufio.Reader) (any, error) {
	a := responseReader{in: in, left: MaxSize + maxLine}
	return a.read(0)
}

func (a *responseReader) read(depth int) (any, error) {
	line, err := readLine(a.in)
	if err != nil {
		return nil, err
	}
	if a.left -= valueSize + int64(len(line)); line == "" || depth > maxDepth || a.left < 0 {
		return nil, errProtocol
	}

	kind, rest := line[0], line[1:]
	switch kind {
	case '+':
		return rest, nil
	case '-':
		return redisError(rest), nil
	}
	n, err := strconv.ParseInt(rest, 10, 64)
	switch {
	case err != nil:
	case kind == ':':
		return n, nil
	case (kind == '$' || kind == '*') && n == -1:
		return nil, nil
	case kind == '$' && n >= 0:
		return a.readBulk(n)
	case kind == '*' && n >= 0 && n <= maxItems:
		return a.readList(n, depth)
	}
	return nil, errProtocol
}

// readLine reads a line up to its \r\n. The line must fit into the buffer.
func readLine(in *bufio.Reader) (string, error) {
	data, err := in.ReadSlice('\n')
	line, ok := strings.CutSuffix(string(data), "\r\n")
	switch {
	case errors.Is(err, bufio.ErrBufferFull), err == nil && !ok:
		return "", errProtocol
	case err != nil:
		return "", unexpected(err)
	}
	return line, nil
}

// readBulk reads a string of n bytes. It allocates memory as the bytes arrive, because the length may be false.
func (a *responseReader) readBulk(n int64) (any, error) {
	if n > min(MaxSize, a.left) {
		return nil, fmt.Errorf("it is too large: %d bytes", n)
	}
	a.left -= n

	const end = "\r\n"
	var data strings.Builder
	if _, err := io.CopyN(&data, a.in, n+int64(len(end))); err != nil {
		return nil, unexpected(err)
	}
	value, ok := strings.CutSuffix(data.String(), end)
	if !ok {
		return nil, errProtocol
	}
	return value, nil
}

// readList reads a list of n responses.
func (a *responseReader) readList(n int64, depth int) (any, error) {
	list := []any{}
	for range n {
		one, err := a.read(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

// unexpected turns io.EOF into io.ErrUnexpectedEOF, for an EOF where a response was expected.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
