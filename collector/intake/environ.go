package intake

import (
	"fmt"
	"net"
	"slices"
	"strings"
)

// The variables of the job's environment.
const (
	addrVar      = "PERFAGENT_OPS_ADDR"
	hostVar      = "PERFAGENT_OPS_HOST"
	portVar      = "PERFAGENT_OPS_PORT"
	dogstatsdVar = "PERFAGENT_OPS_DOGSTATSD_ADDR"
	socketVar    = "PERFAGENT_OPS_SOCKET"

	statsdHostVar = "STATSD_HOST" // for Python's statsd, with statsdPortVar
	statsdPortVar = "STATSD_PORT"
	ddURLVar      = "DD_DOGSTATSD_URL" // for Datadog's clients, with ddHostVar and ddPortVar
	ddHostVar     = "DD_AGENT_HOST"
	ddPortVar     = "DD_DOGSTATSD_PORT"
)

// Variables returns the names of perfagent's own variables with the addresses for the job.
func Variables() []string { return []string{addrVar, hostVar, portVar, dogstatsdVar, socketVar} }

// Environ returns the environment for the job: a copy of environ with the addresses of the sockets. It keeps variables
// set by the user, and replaces variables of an outer perfagent. Each note is a sentence about a different destination
// that the user has set for the job's StatsD or DogStatsD. Without sockets, it returns environ itself.
func (in *Intake) Environ(environ []string) (result, notes []string) {
	if len(in.sockets) == 0 {
		return environ, nil
	}
	e := &environment{list: slices.Clone(environ)}
	e.removeOuter()
	if path := in.sockets[0].path; path != "" {
		e.set(socketVar, path)
		e.setDogStatsD("unix://" + path)
		return e.list, e.notes
	}

	first, second := in.sockets[0].address, in.sockets[1].address
	host, port, _ := net.SplitHostPort(first) // always well-formed
	e.set(addrVar, first)
	e.set(hostVar, host)
	e.set(portVar, port)
	e.set(dogstatsdVar, second)
	e.setStatsD(host, port)
	e.setDogStatsD("udp://" + second)

	return e.list, e.notes
}

// An environment is a list of NAME=VALUE, and the notes on it for the user.
type environment struct {
	list, notes []string
}

// get returns the value of the named variable. If the list contains the name several times, the last value counts.
func (e *environment) get(name string) (value string, ok bool) {
	for _, v := range slices.Backward(e.list) {
		if value, found := strings.CutPrefix(v, name+"="); found {
			return value, true
		}
	}
	return "", false
}

func (e *environment) unset(names ...string) {
	e.list = slices.DeleteFunc(e.list, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(names, name)
	})
}

func (e *environment) set(name, value string) {
	e.unset(name)
	e.list = append(e.list, name+"="+value)
}

// removeOuter removes the variables of an outer perfagent: its own variables, and variables of clients that have its
// address.
func (e *environment) removeOuter() {
	addr, _ := e.get(addrVar)
	host, _ := e.get(statsdHostVar)
	port, _ := e.get(statsdPortVar)
	if addr != "" && net.JoinHostPort(host, port) == addr {
		e.unset(statsdHostVar, statsdPortVar)
	}

	url, _ := e.get(ddURLVar)
	dogstatsd, _ := e.get(dogstatsdVar)
	socket, _ := e.get(socketVar)
	if dogstatsd != "" && url == "udp://"+dogstatsd || socket != "" && url == "unix://"+socket {
		e.unset(ddURLVar)
	}
	e.unset(Variables()...)
}

// setStatsD sets the address for Python's statsd, unless the user has set one.
func (e *environment) setStatsD(host, port string) {
	theirHost, hostSet := e.get(statsdHostVar)
	theirPort, portSet := e.get(statsdPortVar)
	if hostSet || portSet {
		e.notes = append(e.notes, fmt.Sprintf("%s=%s %s=%s is set, so the job's StatsD goes there",
			statsdHostVar, theirHost, statsdPortVar, theirPort))
		return
	}
	e.set(statsdHostVar, host)
	e.set(statsdPortVar, port)
}

// setDogStatsD sets the address for Datadog's clients, unless the user has set one. It never sets DD_AGENT_HOST,
// because tracers would send their traces there.
func (e *environment) setDogStatsD(url string) {
	for _, name := range []string{ddURLVar, ddHostVar, ddPortVar} {
		if theirs, set := e.get(name); set {
			e.notes = append(e.notes, fmt.Sprintf("%s=%s is set, so the job's DogStatsD goes there", name, theirs))
			return
		}
	}
	e.set(ddURLVar, url)
}
