"use strict";

// The token entered under Authorize stays in memory: it is gone after a reload.
SwaggerUIBundle({
	url: "/openapi.json",
	dom_id: "#reference",
	deepLinking: true,
	docExpansion: "list",
	defaultModelsExpandDepth: 0,
	displayRequestDuration: true,
	filter: true,
	persistAuthorization: false,
	validatorUrl: null,
});
