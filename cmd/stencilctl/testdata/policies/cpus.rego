# METADATA
# title: Not too many processors
# scope: package
package cpus

import data.lib

limit := object.get(data.parameters, "limit", 4)

deny contains {"msg": sprintf("it has %d processors, %d are allowed", [cpus.count, limit]), "field": cpus.field} if {
	some cpus in lib.cpus
	cpus.count > limit
}

warn contains "nobody owns it" if not input.object.metadata.labels.owner
