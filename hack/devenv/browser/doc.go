// Package browser provides Chromium and axe-core for tests.
package browser
