// Package sources watches the objects that templates depend on: DataSources, DataVolumes, claims, snapshots, instance types, preferences,
// networks, and the kinds of volume populators that are configured. It stores a reduced, comparable form of each object, so that listeners receive relevant changes only. It also watches kinds
// that are installed later.
package sources
