package cpus_test

import data.cpus

machine(cores) := {"object": {"metadata": {"labels": {"owner": "ada"}}, "spec": {"template": {"spec": {"domain": {"cpu": {"cores": cores}}}}}}}

test_a_small_machine if count(cpus.deny) == 0 with input as machine(2)

test_a_large_machine if {found.msg | some found in cpus.deny} == {"it has 8 processors, 4 are allowed"} with input as machine(8)

todo_test_sockets if cpus.warn == {"never"}
