package store

import "slices"

// A cache has the objects that were used last. It is small, so a list will do.
type cache struct {
	size int
	list []cached // the last used first
}

type cached struct {
	name string
	data []byte
}

// get returns an object, which is the last used one from now on.
func (c *cache) get(name string) (data []byte, ok bool) {
	i := c.index(name)
	if i < 0 {
		return nil, false
	}

	hit := c.list[i]
	c.list = slices.Insert(slices.Delete(c.list, i, i+1), 0, hit)
	return hit.data, true
}

// put keeps an object, in place of the one that was used longest ago if there is no room.
func (c *cache) put(name string, data []byte) {
	if c.size == 0 {
		return
	}
	c.drop(name)
	c.list = slices.Insert(c.list[:min(len(c.list), c.size-1)], 0, cached{name, data})
}

// drop forgets an object.
func (c *cache) drop(name string) {
	if i := c.index(name); i >= 0 {
		c.list = slices.Delete(c.list, i, i+1)
	}
}

// index returns the place of an object in the list, or -1.
func (c *cache) index(name string) int {
	return slices.IndexFunc(c.list, func(e cached) bool { return e.name == name })
}
