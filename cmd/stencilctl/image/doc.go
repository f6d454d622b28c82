// Package image holds the commands of `stencilctl image`: they list GoldenImages, pin them and their channels, promote images, check
// sources and add GoldenImages, with the permissions of the user.
package image
