// Package sources watches the objects that templates depend on: DataSources, DataVolumes, claims, snapshots, instance types, preferences,
// networks, and the configured kinds of volume populators. It stores a reduced, comparable form of each object, so that listeners receive
// relevant changes only. It also watches kinds that are installed later.
package sources
