// Package fermata is the root of the module; its test holds the house together:
// who may import whom, and which room is the one door of each library.
package fermata
