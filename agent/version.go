package agent

import "runtime/debug"

// module is the path of perfagent's module.
const module = "github.com/perfagent/perfagent"

// Version returns the version of perfagent's module in this program, or "devel" if the build does not
// record it.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return develVersion
	}
	return versionIn(info)
}

// develVersion is the version of a build without a stamp.
const develVersion = "devel"

// versionIn returns the version of the module among those that a program was built from. A go.mod may
// replace it by a directory or by another module.
func versionIn(info *debug.BuildInfo) string {
	version := ""
	for _, built := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if built.Path != module {
			continue
		}
		if built.Replace != nil {
			built = built.Replace
		}
		version = built.Version
	}
	if version == "" || version == "(devel)" {
		return develVersion
	}

	return version
}
