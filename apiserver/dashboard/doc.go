// Package dashboard is where people meet the service: HTML pages rendered on
// the server from embedded templates, over the domain services and not over our
// own HTTP API. Every page can be read and every form sent without scripts;
// assets/app.js only makes it quicker and kinder. There is no build step and
// nothing is loaded from elsewhere.
package dashboard
