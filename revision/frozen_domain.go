package revision

// The parts of kubevirt.io/v1 that instance types and preferences contain.

type gpu struct {
	Name              string       `json:"name"`
	DeviceName        string       `json:"deviceName"`
	ClaimName         string       `json:"claimName"`
	RequestName       string       `json:"requestName"`
	VirtualGPUOptions *vgpuOptions `json:"virtualGPUOptions"`
	Tag               string       `json:"tag"`
}

type hostDevice struct {
	Name        string `json:"name"`
	DeviceName  string `json:"deviceName"`
	ClaimName   string `json:"claimName"`
	RequestName string `json:"requestName"`
	Tag         string `json:"tag"`
}

type vgpuOptions struct {
	Display *vgpuDisplay `json:"display"`
}

type vgpuDisplay struct {
	Enabled *bool         `json:"enabled"`
	RAMFB   *featureState `json:"ramFB"`
}

type launchSecurity struct {
	SEV *sev      `json:"sev"`
	SNP *struct{} `json:"snp"`
	TDX *struct{} `json:"tdx"`
}

type sev struct {
	Policy      *sevPolicy `json:"policy"`
	Attestation *struct{}  `json:"attestation"`
	Session     string     `json:"session"`
	DHCert      string     `json:"dhCert"`
}

type sevPolicy struct {
	EncryptedState *bool `json:"encryptedState"`
}

type numa struct {
	GuestMappingPassthrough *struct{} `json:"guestMappingPassthrough"`
}

type realtime struct {
	Mask string `json:"mask"`
}

type hugepages struct {
	PageSize string `json:"pageSize"`
}

type ioThreads struct {
	SupplementalPoolThreadCount *uint32 `json:"supplementalPoolThreadCount"`
}

type clockOffset struct {
	UTC      *clockOffsetUTC `json:"utc"`
	Timezone *string         `json:"timezone"`
}

type clockOffsetUTC struct {
	OffsetSeconds *int `json:"offsetSeconds"`
}

type timers struct {
	HPET   *timer `json:"hpet"`
	KVM    *state `json:"kvm"`
	PIT    *timer `json:"pit"`
	RTC    *rtc   `json:"rtc"`
	Hyperv *state `json:"hyperv"`
}

type timer struct {
	TickPolicy string `json:"tickPolicy"`
	Present    *bool  `json:"present"`
}

type rtc struct {
	timer
	Track string `json:"track"`
}

type state struct {
	Present *bool `json:"present"`
}

type tpm struct {
	Enabled    *bool `json:"enabled"`
	Persistent *bool `json:"persistent"`
}

type blockSize struct {
	Custom      *customBlockSize `json:"custom"`
	MatchVolume *featureState    `json:"matchVolume"`
}

type customBlockSize struct {
	Logical            uint  `json:"logical"`
	Physical           uint  `json:"physical"`
	DiscardGranularity *uint `json:"discardGranularity"`
}

type featureState struct {
	Enabled *bool `json:"enabled"`
}

type apic struct {
	featureState
	EndOfInterrupt bool `json:"endOfInterrupt"`
}

type kvm struct {
	Hidden bool `json:"hidden"`
}

type hyperv struct {
	Relaxed         *featureState `json:"relaxed"`
	VAPIC           *featureState `json:"vapic"`
	Spinlocks       *spinlocks    `json:"spinlocks"`
	VPIndex         *featureState `json:"vpindex"`
	Runtime         *featureState `json:"runtime"`
	SyNIC           *featureState `json:"synic"`
	SyNICTimer      *synicTimer   `json:"synictimer"`
	Reset           *featureState `json:"reset"`
	VendorID        *vendorID     `json:"vendorid"`
	Frequencies     *featureState `json:"frequencies"`
	Reenlightenment *featureState `json:"reenlightenment"`
	TLBFlush        *tlbFlush     `json:"tlbflush"`
	IPI             *featureState `json:"ipi"`
	EVMCS           *featureState `json:"evmcs"`
}

type spinlocks struct {
	featureState
	Retries *uint32 `json:"spinlocks"`
}

type synicTimer struct {
	featureState
	Direct *featureState `json:"direct"`
}

type vendorID struct {
	featureState
	VendorID string `json:"vendorid"`
}

type tlbFlush struct {
	featureState
	Direct   *featureState `json:"direct"`
	Extended *featureState `json:"extended"`
}

type efi struct {
	SecureBoot *bool `json:"secureBoot"`
	Persistent *bool `json:"persistent"`
}

type cpuFeature struct {
	Name   string `json:"name"`
	Policy string `json:"policy"`
}
