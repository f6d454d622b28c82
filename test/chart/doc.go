// Package chart tests the Helm chart in charts/stencil, and the admission policies that it contains.
//
// Some tests render the chart with the real helm and inspect the resulting objects. The others install it into a control plane and check which
// requests the API server accepts and denies, its messages, and the permissions of users.
package chart
