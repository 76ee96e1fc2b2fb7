package pusher

import (
	"cmp"
	"path"
	"strconv"
	"strings"
	"unicode"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/mlflow"
)

// maxName is the most bytes of a name from the job that are kept in a key. A key may be the path of a file on the server.
const maxName = 200

// names are the keys that were made of the job's own names.
type names struct{ keys, folders map[string]bool }

func newNames() names { return names{make(map[string]bool), make(map[string]bool)} }

// take returns the beginning of the keys of a phase or a series: key + "/" + number for each number, or the key itself
// for the number "". What MLflow does not take in a key becomes "_", and so do slashes and dots where they would make
// another path, or a folder of what is a key. Of two names that MLflow takes for one, the second gets a number.
func (n names) take(folder, name string, numbers ...string) string {
	name = legible(name)
	key := folder + name
	if mlflow.CheckKey(key) != nil || n.nested(key, numbers) {
		key = folder + cmp.Or(strings.NewReplacer("/", "_", ".", "_").Replace(name), "_")
	}

	first := key
	for k := 2; n.nested(key, numbers) || n.taken(key, numbers); k++ {
		key = first + "_" + strconv.Itoa(k)
	}
	for _, number := range numbers {
		full := path.Join(key, number)
		n.keys[full] = true
		for dir := path.Dir(full); dir != "."; dir = path.Dir(dir) {
			n.folders[dir] = true
		}
	}

	return key
}

// taken reports whether one of the keys is there.
func (n names) taken(key string, numbers []string) bool {
	for _, number := range numbers {
		if n.keys[path.Join(key, number)] {
			return true
		}
	}
	return false
}

// nested reports whether one of the keys would be the folder of a key that is there, or would have one as its folder.
// Servers without a database keep each key in a file.
func (n names) nested(key string, numbers []string) bool {
	for _, number := range numbers {
		full := path.Join(key, number)
		if n.folders[full] {
			return true
		}
		for dir := path.Dir(full); dir != "."; dir = path.Dir(dir) {
			if n.keys[dir] {
				return true
			}
		}
	}
	return false
}

// legible returns the beginning of a name, with "_" for each character that MLflow does not take in a key.
func legible(name string) string {
	return text.Prefix(strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsNumber(r) || strings.ContainsRune("_-. /", r) {
			return r
		}
		return '_'
	}, strings.ToValidUTF8(name, "_")), maxName)
}
