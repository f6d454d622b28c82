// Package chart tests the Helm chart in charts/stencil, and the admission policies that it carries.
//
// Some tests render the chart with the real helm and look at the objects that come out. The others install it into a control plane
// and ask the API server: what it accepts, what it refuses and with which words, and who may do what.
package chart
