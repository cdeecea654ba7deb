// Package dashboard serves the web interface: HTML pages rendered on the server
// from embedded templates, which call the domain services directly. All pages and
// forms work without JavaScript; assets/app.js only enhances them. There is no
// build step and no third-party content. Texts are messages of the catalogs in
// messages, by their English form.
package dashboard
