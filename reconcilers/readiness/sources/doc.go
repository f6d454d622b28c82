// Package sources watches what templates depend on: DataSources, DataVolumes, claims, snapshots, instance types, preferences and
// networks. Of each object a few words are kept, in a form that compares, so that whoever listens hears of changes that mean
// something. Definitions that are installed later are found then.
package sources
