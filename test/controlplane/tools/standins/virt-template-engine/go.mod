module kubevirt.io/virt-template-engine

go 1.25.0
