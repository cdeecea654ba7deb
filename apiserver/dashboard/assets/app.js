// Progressive enhancement: all pages and forms work without this script.
"use strict";
(() => {
	const one = (selector, root = document) => root.querySelector(selector);
	const all = (selector, root = document) => [...root.querySelectorAll(selector)];
	const own = { "X-Requested-With": "mnemo" };

	// toast shows a message; with a button, until the button is pressed.
	function toast(text, label, act) {
		const p = document.createElement("p");
		p.className = "toast";
		p.append(text);
		if (label) {
			const button = document.createElement("button");
			button.type = "button";
			button.textContent = label;
			button.addEventListener("click", () => { p.remove(); act(); });
			p.append(button);
		} else {
			fade(p);
		}
		one("[data-toasts]").append(p);
		return p;
	}
	const fade = (p) => setTimeout(() => p.remove(), 5000);
	const plural = (n, form) => n + " " + (n === 1 ? form.dataset.one : form.dataset.many);

	// Deletion: rows are hidden immediately and deleted when the user leaves the page, which allows an undo.
	const leaving = { url: "", ids: [], rows: [], toast: null };
	function sendDeletions() {
		if (!leaving.ids.length) return Promise.resolve();
		const body = new URLSearchParams([["confirmed", "yes"], ...leaving.ids.map((id) => ["id", id])]);
		leaving.ids = [];
		return fetch(leaving.url, { method: "POST", body, headers: own, keepalive: true });
	}
	function deleteLater(form) {
		const rows = all("[data-row]", form).filter((row) => one("input[name=id]", row)?.checked);
		if (!rows.length) return;
		leaving.url = form.getAttribute("action");
		for (const row of rows) {
			const box = one("input[name=id]", row);
			leaving.ids.push(box.value);
			leaving.rows.push(row);
			box.checked = false;
			box.disabled = true;
			row.hidden = true;
		}
		tally(form);
		leaving.toast?.remove();
		leaving.toast = toast(plural(leaving.ids.length, form) + " deleted.", "Undo", () => {
			for (const row of leaving.rows) {
				row.hidden = false;
				one("input[name=id]", row).disabled = false;
			}
			leaving.ids = [];
			leaving.rows = [];
			tally(form);
		});
	}
	// The next page must not show deleted rows, so navigation waits for the deletion. Closing the tab also sends it.
	addEventListener("pagehide", sendDeletions);
	async function finish(event, go) {
		if (!leaving.ids.length || event.defaultPrevented) return;
		event.preventDefault();
		await sendDeletions().catch(() => {});
		go();
	}
	document.addEventListener("click", (event) => {
		const link = event.target.closest("a[href]");
		if (!link || event.button || event.metaKey || event.ctrlKey || event.shiftKey || link.target) return;
		if (link.getAttribute("href").startsWith("#")) return;
		finish(event, () => { location.href = link.href; });
	});
	document.addEventListener("submit", (event) => {
		const { target, submitter } = event;
		if (submitter?.hasAttribute("data-undo")) {
			event.preventDefault();
			deleteLater(target);
			return;
		}
		finish(event, () => target.requestSubmit(submitter));
	});

	// Selection of rows.
	function tally(form) {
		const boxes = all("input[name=id]", form).filter((box) => !box.disabled);
		const n = boxes.filter((box) => box.checked).length;
		const text = one("[data-tally]", form);
		text.dataset.idle ??= text.textContent;
		text.textContent = n ? plural(n, form) + " selected" : text.dataset.idle;
		for (const control of all("[data-act]", form)) control.disabled = !n;
		const every = one("[data-all]", form);
		every.checked = n > 0 && n === boxes.length;
		every.indeterminate = n > 0 && n < boxes.length;
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
			await sendDeletions();
			const response = await fetch(url, { signal: pending.signal });
			if (response.redirected) { location.href = url; return; }
			const page = new DOMParser().parseFromString(await response.text(), "text/html");
			const fresh = one("[data-results]", page);
			if (!fresh) { location.href = url; return; }
			leaving.toast?.remove();
			leaving.rows = [];
			one("[data-results]").replaceChildren(...fresh.childNodes);
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
	for (const keys of all("[data-keys]")) keys.textContent = apple ? "⌘K" : "Ctrl K";
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
			const page = new DOMParser().parseFromString(await response.text(), "text/html");
			const fresh = one("[data-results]", page);
			if (response.redirected || !fresh) { location.href = "/search?" + new URLSearchParams({ q: query }); return; }
			hits.replaceChildren(...fresh.childNodes);
		} catch (error) {
			if (error.name !== "AbortError") hits.replaceChildren("Connection lost. Try again.");
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
		const slash = event.key === "/" && !event.metaKey && !event.ctrlKey && !event.altKey && !event.target.closest("input, textarea, select");
		if (!command && !slash) return;
		event.preventDefault();
		openPalette();
	});

	// Import: drag and drop, and upload progress.
	for (const form of all("[data-drop]")) {
		const input = one("input[type=file]", form);
		const over = (on) => (event) => { event.preventDefault(); form.classList.toggle("over", on); };
		form.addEventListener("dragover", over(true));
		form.addEventListener("dragleave", over(false));
		form.addEventListener("drop", (event) => {
			over(false)(event);
			if (!event.dataTransfer.files.length) return;
			input.files = event.dataTransfer.files;
			send(form, input.files[0]);
		});
		form.addEventListener("submit", (event) => { event.preventDefault(); send(form, input.files[0]); });
	}
	function send(form, file) {
		const bar = one("progress", form), text = one("[data-sent]", form);
		one("[data-sending]", form).hidden = false;
		const body = new FormData();
		body.append("file", file);
		const request = new XMLHttpRequest();
		request.open("POST", form.action);
		request.setRequestHeader("X-Requested-With", "mnemo");
		request.upload.addEventListener("progress", (event) => {
			const percent = Math.floor(100 * event.loaded / event.total);
			bar.value = percent;
			text.textContent = percent < 100 ? "Uploading… " + percent + "%" : "Processing…";
		});
		request.addEventListener("load", () => {
			if (request.status === 201) location.href = request.getResponseHeader("Location");
			else text.textContent = request.responseText;
		});
		request.addEventListener("error", () => { text.textContent = "Connection lost. Try again."; });
		request.send(body);
	}
	// Polls the status of an import until it is settled, at increasing intervals.
	const began = Date.now();
	async function poll() {
		const part = one("[data-poll]");
		if (!part || part.dataset.poll === "settled") return;
		try {
			const page = new DOMParser().parseFromString(await (await fetch(location.href)).text(), "text/html");
			const fresh = one("[data-poll]", page);
			if (fresh) {
				dress(fresh);
				part.dataset.poll = fresh.dataset.poll;
				part.replaceChildren(...fresh.childNodes);
			}
		} catch { /* retry at the next interval */ }
		setTimeout(poll, Math.min(Math.max((Date.now() - began) / 10, 1000), 10000));
	}

	// Copy buttons.
	document.addEventListener("click", async (event) => {
		const button = event.target.closest("[data-copy]");
		if (!button) return;
		const source = document.getElementById(button.dataset.copy);
		try {
			await navigator.clipboard.writeText(source.textContent);
			button.textContent = "Copied";
			setTimeout(() => { button.textContent = "Copy"; }, 2000);
		} catch {
			getSelection().selectAllChildren(source);
			toast("Press Ctrl+C to copy the selected text.");
		}
	});

	// Local times, in the same format as the server.
	const local = new Intl.DateTimeFormat("en-GB", { dateStyle: "long", timeStyle: "short" });
	function dress(root) {
		for (const node of all("[data-scripted]", root)) node.hidden = false;
		for (const time of all("time[data-local]", root)) time.textContent = local.format(new Date(time.dateTime));
		for (const form of all("[data-pick]", root)) tally(form);
	}
	const now = new Date();
	const today = [now.getFullYear(), now.getMonth() + 1, now.getDate()].map((n) => String(n).padStart(2, "0")).join("-");
	for (const field of all("[data-today]")) field.value = today;
	for (const text of all("[data-fleeting]")) fade(text);
	one("[data-reveal]")?.focus();
	// Shows a notice only once, not after a reload.
	const here = new URL(location.href);
	if (here.searchParams.has("done")) {
		here.searchParams.delete("done");
		history.replaceState(null, "", here);
	}
	dress(document);
	setTimeout(poll, 500);
})();
