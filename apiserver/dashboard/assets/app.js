// Progressive enhancement: all pages and forms work without this script.
"use strict";
(() => {
	const one = (selector, root = document) => root.querySelector(selector);
	const all = (selector, root = document) => [...root.querySelectorAll(selector)];
	const own = { "X-Requested-With": "mnemo" };

	const parse = async (response) => new DOMParser().parseFromString(await response.text(), "text/html");
	const post = (url, fields) => fetch(url, { method: "POST", body: new URLSearchParams(fields), headers: own });

	// t returns a message in the language of the page, as Go formats it. The first argument selects the plural form.
	const messages = JSON.parse(one("[data-messages]").textContent), language = document.documentElement.lang;
	const plurals = new Intl.PluralRules(language), digits = new Intl.NumberFormat(language);
	function t(key, ...args) {
		const forms = messages[key] ?? key, text = forms[plurals.select(args[0])] ?? forms.other ?? forms;
		let next = 0;
		return text.replace(/%(?:\[(\d)\])?([ds%])/g, (_, number, verb) => {
			if (verb === "%") return verb;
			const value = args[number ? number - 1 : next++];
			return verb === "d" ? digits.format(value) : value;
		});
	}
	// The rows that a form selects.
	const selected = (form, n) => form.dataset.pick === "memories" ? t("%d memories selected", n) : t("%d conversations selected", n);
	const deleted = (form, n) => form.dataset.pick === "memories" ? t("%d memories deleted.", n) : t("%d conversations deleted.", n);

	// toast shows a message, with a button if it has a label.
	function toast(text, label, act, time = 5000) {
		const p = document.createElement("p");
		p.className = "toast";
		p.append(text);
		if (label) {
			const button = document.createElement("button");
			button.type = "button";
			button.textContent = label;
			button.addEventListener("click", () => { p.remove(); act(); });
			p.append(button);
		}
		setTimeout(() => p.remove(), time);
		one("[data-toasts]").append(p);
		return p;
	}

	// refresh shows the current results and counts. It keeps the selection, the focus and what is open.
	async function refresh() {
		const results = one("main [data-results]");
		if (!results) return;
		const response = await fetch(location.href).catch(() => null);
		if (!response?.ok || response.redirected) return;
		const page = await parse(response);
		const checked = new Set(all("input[name=id]:checked", results).map((box) => box.value));
		const at = all("[data-row]", results).indexOf(document.activeElement?.closest("[data-row]"));
		const inside = results.contains(document.activeElement);
		const open = all("details", results).map((part) => part.open), chosen = all("select", results).map((list) => list.value);
		for (const part of ["main [data-results]", "main [data-side]"]) {
			const loaded = one(part, page);
			if (loaded) one(part)?.replaceChildren(...loaded.childNodes);
		}
		for (const box of all("input[name=id]", results)) box.checked = checked.has(box.value);
		for (const [i, part] of all("details", results).entries()) part.open = open[i] ?? part.open;
		for (const [i, list] of all("select", results).entries()) if (all("option", list).some((o) => o.value === chosen[i])) list.value = chosen[i];
		dress(results);
		const rows = all("[data-row]", results);
		if (inside) (one("input", rows[Math.min(Math.max(at, 0), rows.length - 1)] ?? document.createElement("p")) ?? one("main")).focus();
	}

	// Other tabs of the browser show changes at once, and every tab when it is looked at.
	const tabs = new BroadcastChannel("mnemo");
	tabs.addEventListener("message", refresh);
	document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
	async function changed() {
		tabs.postMessage("changed");
		await refresh();
	}

	// A deletion takes effect at once. For ten seconds a message offers to undo it, also on the next page.
	const undoTime = 9500; // the server counts ten seconds from the deletion
	function offerUndo(last) {
		const left = last.until - Date.now();
		if (left <= 0) return;
		toast(last.text, t("Undo"), async () => {
			sessionStorage.removeItem("undo");
			const response = await post(last.action, [["deletion", last.deletion]]).catch(() => null);
			toast(!response ? t("Connection lost. Nothing was restored.") : response.ok ? t("Deletion undone.") : await response.text());
			await changed();
		}, left);
	}
	async function deleteChosen(form) {
		const rows = all("[data-row]", form).filter((row) => one("input[name=id]", row).checked);
		if (!rows.length) return;
		const text = deleted(form, rows.length);
		const show = (on) => { for (const row of rows) { row.hidden = !on; one("input[name=id]", row).checked = on; } tally(form); };
		const ids = rows.map((row) => ["id", one("input[name=id]", row).value]);
		show(false);
		const response = await post(form.getAttribute("action"), ids).catch(() => null);
		if (!response?.ok || response.redirected) {
			show(true);
			toast(response && !response.redirected ? await response.text() : t("Nothing was deleted. Reload the page and try again."));
			return;
		}
		const deletion = response.headers.get("X-Undo");
		if (deletion) {
			const last = { action: form.getAttribute("action").replace("/delete", "/undelete"), deletion, text, until: Date.now() + undoTime };
			sessionStorage.setItem("undo", JSON.stringify(last));
			offerUndo(last);
		}
		await changed();
	}
	document.addEventListener("submit", (event) => {
		if (!event.submitter?.hasAttribute("data-undo")) return;
		event.preventDefault();
		deleteChosen(event.target);
	});

	// Selection of rows.
	function tally(form) {
		const boxes = all("input[name=id]", form).filter((box) => !box.disabled);
		const n = boxes.filter((box) => box.checked).length;
		const text = one("[data-tally]", form);
		text.dataset.idle ??= text.textContent;
		text.textContent = n ? selected(form, n) : text.dataset.idle;
		for (const control of all("[data-act]", form)) control.disabled = !n;
		const every = one("[data-all]", form);
		every.checked = n > 0 && n === boxes.length;
		every.indeterminate = n > 0 && n < boxes.length;
	}
	// Shift selects all rows from the one that was clicked before.
	let before = null;
	document.addEventListener("click", (event) => {
		if (!event.target.matches("[data-pick] input[name=id]")) return;
		const boxes = all("input[name=id]", event.target.form), ends = [boxes.indexOf(before), boxes.indexOf(event.target)].sort((a, b) => a - b);
		if (event.shiftKey && ends[0] >= 0) for (const box of boxes.slice(ends[0], ends[1])) box.checked = event.target.checked;
		before = event.target;
		tally(event.target.form);
	});
	// A memory has the date on which it is saved: the page may have been open for days.
	document.addEventListener("submit", (event) => {
		const now = new Date();
		const today = [now.getFullYear(), now.getMonth() + 1, now.getDate()].map((n) => String(n).padStart(2, "0")).join("-");
		for (const field of all("[data-today]", event.target)) field.value = today;
	});
	// A text is kept until it is stored: an error or an expired session would lose it. Only its author gets it back, once.
	const author = document.body.dataset.user;
	const readDraft = () => JSON.parse(sessionStorage.getItem("draft") ?? "null");
	document.addEventListener("submit", (event) => {
		const form = event.target, action = form.getAttribute("action");
		if (event.defaultPrevented || !form.matches("[data-draft]")) return;
		try {
			sessionStorage.setItem("draft", JSON.stringify({ author: author ?? readDraft()?.author, action, fields: [...new FormData(form)] }));
		} catch {
			sessionStorage.removeItem("draft"); // it is too long
		}
	});
	function restoreDraft(notice) {
		const draft = readDraft(), form = all("form[data-draft]").find((f) => f.getAttribute("action") === draft?.action);
		if (!draft || !author) return; // they may sign in again
		if (draft.author !== author || form?.dataset.draft === "stored" || ["added", "duplicate", "saved", "unchanged", "bucket-added"].includes(notice)) {
			sessionStorage.removeItem("draft");
			return;
		}
		if (!form || form.dataset.draft) return;
		sessionStorage.removeItem("draft");
		for (const [name, value] of draft.fields) {
			const field = form.elements[name];
			if (!field || name === "back" || field.options && ![...field.options].some((o) => o.value === value)) continue;
			field.value = value;
		}
		toast(t("Your text was not saved. It is back in the form."));
	}
	// The page after a form was sent has the focus and the position of this one.
	document.addEventListener("submit", (event) => {
		const { target: form, submitter } = event, to = one("[data-move-to]", form);
		if (event.defaultPrevented) return;
		if (submitter?.getAttribute("formaction") === "/memories/move" && !to.value) {
			event.preventDefault();
			to.focus();
			return;
		}
		const at = document.activeElement, row = all("[data-row]").indexOf(at?.closest("[data-row]"));
		const focus = form.closest(".compose") ? "#text" : at?.id ? "#" + CSS.escape(at.id) : row >= 0 || at?.closest("[data-pick]") ? "[data-row] input" : "";
		sessionStorage.setItem("place", JSON.stringify({ path: location.pathname, focus, row: Math.max(row, 0), y: scrollY }));
	});
	// After a sign-out, the tab has nothing of the user.
	document.addEventListener("submit", (event) => { if (event.target.getAttribute("action")?.endsWith("/sign-out")) sessionStorage.clear(); });
	function returnToPlace() {
		const place = JSON.parse(sessionStorage.getItem("place") ?? "null");
		sessionStorage.removeItem("place");
		if (place?.path !== location.pathname || location.hash) return;
		scrollTo(0, place.y);
		if (place.focus) (all(place.focus)[place.row] ?? one(place.focus))?.focus({ preventScroll: true });
	}
	document.addEventListener("change", (event) => {
		const form = event.target.closest("[data-pick]");
		if (!form) return;
		if (event.target.matches("[data-all]")) {
			for (const box of all("input[name=id]", form)) if (!box.disabled) box.checked = event.target.checked;
		}
		tally(form);
	});

	// Search as you type: fetches the page and replaces the results.
	let pending = null;
	async function search(form) {
		const fields = [...new FormData(form)].filter(([, value]) => value !== "");
		const url = form.getAttribute("action") + (fields.length ? "?" + new URLSearchParams(fields) : "");
		pending?.abort();
		pending = new AbortController();
		try {
			const response = await fetch(url, { signal: pending.signal });
			if (response.redirected) { location.href = url; return; }
			const page = await parse(response);
			const loaded = one("[data-results]", page), filter = one("[data-filter]", page);
			if (!loaded) { location.href = url; return; }
			one("[data-results]").replaceChildren(...loaded.childNodes);
			if (filter) one("[data-filter]").replaceChildren(...filter.childNodes);
			history.replaceState(null, "", url);
			dress(one("[data-results]"));
		} catch (error) {
			if (error.name !== "AbortError") location.href = url;
		}
	}
	let typing = 0;
	for (const form of all("form[data-live]")) {
		form.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(search, 220, form); });
		form.addEventListener("submit", (event) => { event.preventDefault(); clearTimeout(typing); search(form); });
	}
	// Search from every page: Ctrl+K, Command+K or / opens a dialog with the results of the search page.
	const palette = one("[data-palette]");
	const apple = /Mac|iPhone|iPad/.test(navigator.platform);
	for (const keys of all("[data-keys]")) keys.textContent = apple ? "⌘ " + keys.dataset.keys : t("Ctrl %s", keys.dataset.keys);
	function openPalette() {
		const here = location.pathname === "/search" ? one("main [data-search]") : null;
		if (!here) palette.showModal();
		const box = here ?? one("input", palette);
		box.focus();
		box.select();
	}
	let looking = null, lookup = 0;
	async function look() {
		const query = one("input", palette).value.trim(), hits = one("[data-hits]", palette);
		looking?.abort();
		if (!query) { hits.replaceChildren(); return; }
		looking = new AbortController();
		try {
			const response = await fetch("/search?" + new URLSearchParams({ q: query }), { signal: looking.signal });
			const page = await parse(response);
			const loaded = one("[data-results]", page);
			if (response.redirected || !loaded) { location.href = "/search?" + new URLSearchParams({ q: query }); return; }
			dress(loaded);
			hits.replaceChildren(...loaded.childNodes);
		} catch (error) {
			if (error.name !== "AbortError") hits.replaceChildren(t("Connection lost. Try again."));
		}
	}
	palette?.addEventListener("input", () => { clearTimeout(lookup); lookup = setTimeout(look, 180); });
	palette?.addEventListener("click", (event) => { if (event.target === palette) palette.close(); });
	palette?.addEventListener("keydown", (event) => {
		if (event.key === "Escape") { // a search box would only be emptied
			event.preventDefault();
			palette.close();
		}
		if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
		event.preventDefault();
		const stops = [one("input", palette), ...all("[data-hits] .card a, [data-hits] summary", palette).filter((node) => node.checkVisibility())];
		const next = stops.indexOf(document.activeElement) + (event.key === "ArrowDown" ? 1 : -1);
		stops[(next + stops.length) % stops.length].focus();
	});
	for (const link of all("[data-open-palette]")) {
		link.addEventListener("click", (event) => {
			if (event.metaKey || event.ctrlKey || event.shiftKey) return;
			event.preventDefault();
			openPalette();
		});
	}
	document.addEventListener("keydown", (event) => {
		if (!palette || palette.open || one("dialog[open]")) return;
		const command = event.key.toLowerCase() === "k" && (event.metaKey || event.ctrlKey) && !event.altKey && !event.shiftKey;
		const plain = !event.metaKey && !event.ctrlKey && !event.altKey && !event.target.closest("input:not([type=checkbox]), textarea, select");
		if (!command && !(plain && (event.key === "/" || event.key === "?"))) return;
		event.preventDefault();
		if (event.key === "?") one("[data-help]").showModal();
		else openPalette();
	});
	document.addEventListener("keydown", (event) => {
		if (event.key !== "Enter" || !(event.metaKey || event.ctrlKey) || !event.target.matches("textarea")) return;
		event.preventDefault();
		event.target.form.requestSubmit();
	});
	one("[data-help]")?.addEventListener("click", (event) => { if (event.target.matches("dialog")) event.target.close(); });

	// Import: choose several files or drop them anywhere on the page. They are uploaded one after another.
	const drop = one("[data-drop]");
	if (drop) {
		const input = one("input[type=file]", drop), zone = one("[data-dropzone]");
		const hasFiles = (event) => [...event.dataTransfer?.types ?? []].includes("Files");
		for (const node of all("[data-unscripted]", drop)) node.hidden = true;
		addEventListener("dragover", (event) => { if (hasFiles(event)) { event.preventDefault(); zone.hidden = false; } });
		addEventListener("dragleave", (event) => { if (!event.relatedTarget) zone.hidden = true; });
		addEventListener("drop", (event) => {
			if (!hasFiles(event)) return;
			event.preventDefault();
			zone.hidden = true;
			uploadAll(drop, [...event.dataTransfer.files]);
		});
		input.addEventListener("change", () => { uploadAll(drop, [...input.files]); input.value = ""; });
		drop.addEventListener("submit", (event) => event.preventDefault());
		for (const link of all("[data-choose-file]")) link.addEventListener("click", () => input.click());
	}
	// uploadAll uploads the files, and opens the import, or the list of imports if there are several.
	async function uploadAll(form, files) {
		const imports = [];
		const rows = files.map((file) => uploadRow(form, file));
		for (const [i, file] of files.entries()) {
			const to = await upload(form, file, rows[i]);
			if (to) imports.push(to);
		}
		if (!imports.length || imports.length < files.length) return; // the reasons are shown
		location.href = imports.length === 1 ? imports[0] : "/chats/imports";
	}
	function uploadRow(form, file) {
		const row = document.createElement("li"), line = document.createElement("p"), name = document.createElement("strong");
		const state = document.createElement("span"), bar = document.createElement("progress");
		name.textContent = file.name;
		state.className = "hint";
		state.textContent = t("Waiting");
		bar.max = 100;
		bar.value = 0;
		bar.setAttribute("aria-label", t("Upload of %s", file.name));
		line.append(name, state);
		row.append(line, bar);
		one("[data-uploads]", form).append(row);
		return { state, bar };
	}
	// upload returns the address of the import, or nothing if the file was rejected.
	function upload(form, file, { state, bar }) {
		const body = new FormData(), request = new XMLHttpRequest(), began = Date.now();
		const fail = (text, done) => { state.textContent = text; state.className = "failed"; bar.remove(); done(null); };
		body.append("file", file);
		return new Promise((done) => {
			request.open("POST", form.action);
			request.setRequestHeader("X-Requested-With", "mnemo");
			request.upload.addEventListener("progress", ({ loaded, total }) => {
				bar.value = 100 * loaded / total;
				const seconds = (Date.now() - began) / 1000 * (total - loaded) / Math.max(loaded, 1);
				const percent = Math.floor(bar.value);
				state.textContent = loaded === total ? t("Processing…") :
					seconds < 60 ? t("%d%%, about %d s left", percent, Math.ceil(seconds)) : t("%d%%, about %d min left", percent, Math.ceil(seconds / 60));
			});
			request.addEventListener("load", () => {
				if (request.status !== 201) { fail(request.responseText, done); return; }
				state.textContent = t("Uploaded");
				bar.value = 100;
				done(request.getResponseHeader("Location"));
			});
			request.addEventListener("error", () => fail(t("Connection lost. Try again."), done));
			request.send(body);
		});
	}
	// Polls the status of an import until it is settled, at increasing intervals.
	const began = Date.now();
	async function poll() {
		const part = one("[data-poll]");
		if (!part || part.dataset.poll === "settled") return;
		try {
			const page = await parse(await fetch(location.href));
			const loaded = one("[data-poll]", page);
			if (loaded) {
				dress(loaded);
				part.dataset.poll = loaded.dataset.poll;
				part.replaceChildren(...loaded.childNodes);
			}
		} catch { /* retry at the next interval */ }
		setTimeout(poll, Math.min(Math.max((Date.now() - began) / 10, 1000), 10000));
	}

	// Copy buttons, of an element by its id or of the code next to the button.
	document.addEventListener("click", async (event) => {
		const button = event.target.closest("[data-copy]");
		if (!button) return;
		const source = button.dataset.copy ? document.getElementById(button.dataset.copy) : one("code", button.parentElement);
		try {
			await navigator.clipboard.writeText(source.textContent);
			button.textContent = t("Copied");
			setTimeout(() => { button.textContent = t("Copy"); }, 2000);
		} catch {
			getSelection().selectAllChildren(source);
			toast(t("Press Ctrl+C to copy the selected text."));
		}
	});

	// Long conversations: the next messages are loaded before the reader gets there, earlier ones on request.
	async function loadMore(place) {
		const link = one("a", place), after = place.dataset.more === "after";
		if (place.dataset.loading) return;
		place.dataset.loading = "yes";
		const response = await fetch(link.href).catch(() => null);
		if (!response?.ok || response.redirected) { delete place.dataset.loading; return; }
		const page = await parse(response);
		const conversation = one("[data-conversation]"), loaded = one("[data-conversation]", page), next = one(`[data-more="${place.dataset.more}"]`, page);
		dress(loaded);
		const height = document.documentElement.scrollHeight;
		if (after) conversation.append(...loaded.childNodes);
		else conversation.prepend(...loaded.childNodes);
		if (next) { place.replaceWith(next); watchMore(next); } else place.remove();
		if (!after) scrollBy(0, document.documentElement.scrollHeight - height);
	}
	const coming = new IntersectionObserver((entries) => {
		for (const entry of entries) if (entry.isIntersecting) loadMore(entry.target);
	}, { rootMargin: "600px" });
	function watchMore(place) {
		if (place.dataset.more === "after") coming.observe(place);
		one("a", place).addEventListener("click", (event) => { event.preventDefault(); loadMore(place); });
	}
	for (const place of all("[data-more]")) watchMore(place);

	// Theme: as the system, light or dark. The server reads the cookie, so that pages do not flash.
	const themes = ["system", "light", "dark"];
	for (const button of all("[data-theme-switch]")) {
		const name = () => document.documentElement.dataset.theme ?? "system";
		const label = () => { button.textContent = { system: t("System theme"), light: t("Light theme"), dark: t("Dark theme") }[name()]; };
		button.addEventListener("click", () => {
			const next = themes[(themes.indexOf(name()) + 1) % themes.length];
			if (next === "system") delete document.documentElement.dataset.theme;
			else document.documentElement.dataset.theme = next;
			remember("mnemo_theme", next, next === "system" ? 0 : 31536000);
			label();
		});
		label();
	}
	function remember(name, value, seconds) {
		document.cookie = name + "=" + value + "; Path=/; SameSite=Lax; Max-Age=" + seconds + (location.protocol === "https:" ? "; Secure" : "");
	}

	// Language: that of the browser, until the reader chooses one.
	for (const button of all("[data-language]")) {
		button.addEventListener("click", () => {
			remember("mnemo_language", button.dataset.language, 31536000);
			if (document.cookie.includes(button.dataset.language)) location.reload(); // reading waits until it is stored
		});
	}

	// A one-time sign-in link has its code in the fragment, which no server sees. It does not stay in the history.
	const link = one("form[data-link]");
	if (link && location.hash.length > 1) {
		one("input[name=code]", link).value = location.hash.slice(1);
		history.replaceState(null, "", location.pathname);
		link.requestSubmit();
	}

	// Dates and times in the reader's zone, and in the reader's format of the language. A date without a time is the same everywhere.
	const format = [new Intl.DateTimeFormat().resolvedOptions().locale, ...navigator.languages].find((l) => l.split("-")[0] === language.split("-")[0]) ?? language;
	const local = new Intl.DateTimeFormat(format, { dateStyle: "long", timeStyle: "short" });
	const localDay = new Intl.DateTimeFormat(format, { dateStyle: "long" });
	const sameDay = new Intl.DateTimeFormat(format, { dateStyle: "long", timeZone: "UTC" });
	function localize(time) {
		const at = new Date(time.dateTime);
		if (time.hasAttribute("data-local")) time.textContent = local.format(at);
		else if (time.title) time.title = local.format(at);
		else time.textContent = (time.dateTime.length === 10 ? sameDay : localDay).format(at);
	}
	function dress(root) {
		for (const node of all("[data-scripted]", root)) node.hidden = false;
		for (const time of all("time[datetime]", root)) localize(time);
		for (const form of all("[data-pick]", root)) tally(form);
	}
	// The server reads "yesterday" in a search and the dates of filters in this zone.
	remember("mnemo_zone", new Intl.DateTimeFormat().resolvedOptions().timeZone, 31536000);
	for (const text of all("[data-fleeting]")) setTimeout(() => text.remove(), one("form", text) ? undoTime : 5000);
	one("[data-reveal]")?.focus();
	// Shows a notice only once, not after a reload.
	const here = new URL(location.href);
	restoreDraft(here.searchParams.get("done"));
	if (here.searchParams.has("done")) {
		here.searchParams.delete("done");
		here.searchParams.delete("undo");
		history.replaceState(null, "", here);
		tabs.postMessage("changed");
	}
	const last = sessionStorage.getItem("undo");
	if (last) offerUndo(JSON.parse(last));
	dress(document);
	returnToPlace();
	setTimeout(poll, 500);
})();
