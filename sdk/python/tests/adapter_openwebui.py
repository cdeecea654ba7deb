"""The filter for Open WebUI with the server at MNEMO_URL, loaded and called as Open WebUI does."""

import asyncio
import inspect
import os
import re
import types
import unittest
import uuid
from pathlib import Path

from mnemo import Mnemo

FILE = Path(__file__).parents[3] / "docs" / "connect" / "openwebui_filter.py"


def load():
    """Executes the file in a new module and returns its filter and the fields of its first comment."""
    source = FILE.read_text(encoding="utf-8")
    module = types.ModuleType("function_mnemo")
    exec(source, module.__dict__)
    comment = source.split('"""')[1]
    return module.Filter(), dict(re.findall(r"^\s*([a-z_]+):\s*(.*)$", comment, re.MULTILINE))


class OpenWebUITest(unittest.TestCase):
    def setUp(self):
        self.filter, self.fields = load()
        self.user = f"{uuid.uuid4()}"
        key = os.environ["MNEMO_APPLICATION_KEY"]
        self.mnemo = self.enterContext(Mnemo(api_key=key, user=self.user))
        self.valves = {"url": os.environ["MNEMO_URL"], "application_key": key}
        self.user_valves, self.events = {}, []

    def call(self, name, body):
        """Calls a handler with the valves and the parameters that it declares."""
        self.filter.valves = self.filter.Valves(**self.valves)
        handler = getattr(self.filter, name)
        self.assertTrue(inspect.iscoroutinefunction(handler))

        async def emit(event):
            self.events.append(event["data"]["description"])

        user = {"id": self.user, "email": "ann@acme.test", "name": "Ann", "role": "user", "valves": self.filter.UserValves(**self.user_valves)}
        extra = {"__user__": user, "__event_emitter__": emit, "__metadata__": {}, "__request__": None}
        wanted = inspect.signature(handler).parameters
        return asyncio.run(handler(body, **{k: v for k, v in extra.items() if k in wanted}))

    def ask(self, *messages):
        body = {"model": "m", "messages": [{"role": role, "content": content} for role, content in messages]}
        return self.call("inlet", body)["messages"]

    def answer(self, chat="chat-1", **changes):
        messages = [
            {"id": "q1", "role": "user", "content": [{"type": "text", "text": "Which harbour did we visit?"}], "timestamp": 1_750_000_000},
            {"id": "a1", "role": "assistant", "timestamp": 1_750_000_005, **changes,
             "content": '<details type="reasoning" done="true">\n<summary>Thought</summary>\nHm.\n</details>\nThe harbour of Husum.'},
        ]
        body = {"chat_id": chat, "model": "m", "messages": messages}
        self.assertIs(self.call("outlet", body), body)

    def test_file(self):
        self.assertEqual(self.fields["requirements"], "mnemo-client")
        self.assertEqual(self.fields["title"], "Mnemo")

    def test_recall(self):
        self.mnemo.memories.create("2026-05-03 I adopted a grey cat called Miso.")
        system, question = self.ask(("user", "What is the name of my cat?"))
        self.assertEqual((system["role"], question["role"]), ("system", "user"))
        self.assertIn("called Miso", system["content"])
        self.assertEqual(self.events, ["Found in memory: 1"])
        system, _ = self.ask(("system", "Be brief."), ("user", "What is the name of my cat?"))
        self.assertTrue(system["content"].startswith("Be brief.\n\n"))
        self.assertIn("called Miso", system["content"])
        self.assertEqual(len(self.ask(("user", "2026-05-03 I adopted a grey cat called Miso. What did I do?"))), 1)
        self.user_valves = {"recall": False}
        self.assertEqual(len(self.ask(("user", "What is the name of my cat?"))), 1)

    def test_store(self):
        self.answer()
        self.answer()
        chats = list(self.mnemo.chats.list(provider="openwebui"))
        self.assertEqual([c.message_count for c in chats], [2])
        stored = self.mnemo.chats.get(chats[0].id)
        self.assertEqual([m.text for m in stored.messages], ["Which harbour did we visit?", "The harbour of Husum."])
        self.assertEqual(stored.messages[1].timestamp.timestamp(), 1_750_000_005)
        self.assertIn("Husum", self.ask(("user", "which harbour was it"))[0]["content"])
        self.answer("local:temporary")
        self.user_valves = {"store": False}
        self.answer("chat-2")
        self.assertEqual(self.mnemo.chats.count(), 1)

    def test_own_token(self):
        self.user_valves = {"token": os.environ["MNEMO_API_KEY"]}
        chat = f"own-{self.user}"
        self.answer(chat)
        self.assertEqual(self.mnemo.chats.count(), 0)
        with Mnemo() as own:
            mine = [c for c in own.chats.list(provider="openwebui") if own.chats.get(c.id).platform_conversation_id == chat]
            self.assertEqual(len(mine), 1)
            own.chats.delete([mine[0].id])

    def test_unavailable(self):
        self.valves["url"] = "http://127.0.0.1:9"
        self.assertEqual(len(self.ask(("user", "What is the name of my cat?"))), 1)
        self.answer()
        self.assertRegex(self.events[0], "^Memory is unavailable")
        self.assertRegex(self.events[1], "^The chat was not stored in memory")

    def test_not_configured(self):
        self.valves = {}
        self.assertEqual(len(self.ask(("user", "What is the name of my cat?"))), 1)
        self.answer()
        self.assertEqual(self.events, [])
        self.valves["application_key"] = "mn_key"
        del os.environ["MNEMO_URL"]
        self.addCleanup(os.environ.__setitem__, "MNEMO_URL", self.mnemo._transport.config.url)
        self.ask(("user", "What is the name of my cat?"))
        self.assertRegex(self.events[0], "url is required")


if __name__ == "__main__":
    unittest.main()
