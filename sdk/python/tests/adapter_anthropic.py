"""MnemoMemoryTool with anthropic and the server at MNEMO_URL."""

import unittest

from anthropic.lib.tools import ToolError

from mnemo import AsyncMnemo, Mnemo, MnemoError
from mnemo.integrations.anthropic import MnemoMemoryTool

NOTES = "/memories/notes.md"


class MemoryToolTest(unittest.TestCase):
    def setUp(self):
        self.client = self.enterContext(Mnemo())
        self.tool = MnemoMemoryTool(self.client)
        self.addCleanup(self.tool.clear_all_memory)

    def call(self, command, **arguments):
        return self.tool.call({"command": command, **arguments})

    def test_declaration(self):
        self.assertEqual(self.tool.to_dict(), {"type": "memory_20250818", "name": "memory"})

    def test_files(self):
        self.assertIn("/memories", self.call("view", path="/memories"))
        self.call("create", path=NOTES, file_text="Likes tea\nLives in Lisbon\n")
        with self.assertRaisesRegex(ToolError, "already exists"):
            self.call("create", path=NOTES, file_text="other")
        self.call("create", path="/memories/people/ana/pets.md", file_text="A cat")
        listing = self.call("view", path="/memories")
        self.assertIn("26\t/memories/notes.md", listing)
        self.assertIn("5\t/memories/people/ana/", listing)
        self.assertNotIn("pets.md", listing)
        self.assertIn("     1\tLikes tea", self.call("view", path=NOTES))
        self.assertNotIn("Likes tea", self.call("view", path=NOTES, view_range=[2, 2]))

    def test_edits(self):
        self.call("create", path=NOTES, file_text="Likes tea\nLives in Lisbon\n")
        self.assertIn("     1\tLikes coffee", self.call("str_replace", path=NOTES, old_str="tea", new_str="coffee"))
        self.call("insert", path=NOTES, insert_line=1, insert_text="Plays the cello\n")
        self.assertIn("     2\tPlays the cello", self.call("view", path=NOTES))
        with self.assertRaisesRegex(ToolError, "verbatim"):
            self.call("str_replace", path=NOTES, old_str="milk", new_str="x")
        with self.assertRaisesRegex(ToolError, "insert_line"):
            self.call("insert", path=NOTES, insert_line=9, insert_text="x")
        with self.assertRaisesRegex(ToolError, "32"):
            self.call("create", path="/memories/big.md", file_text="x" * 40_000)
        found = self.client.memories.search("what instrument does the user play")
        self.assertIn("cello", found[0].text)

    def test_rename_and_delete(self):
        self.call("create", path="/memories/a/one.md", file_text="1")
        self.call("create", path="/memories/a/two.md", file_text="2")
        self.call("rename", old_path="/memories/a", new_path="/memories/b")
        self.assertIn("/memories/b/two.md", self.call("view", path="/memories/b"))
        self.call("delete", path="/memories/b/one.md")
        self.call("delete", path="/memories/b")
        with self.assertRaisesRegex(ToolError, "does not exist"):
            self.call("view", path="/memories/b")

    def test_paths_stay_below_the_root(self):
        for path in ("/etc/passwd", "/memories/../etc", "/memoriesx", "/memories/a\nb"):
            with self.assertRaisesRegex(ToolError, "must start"):
                self.call("create", path=path, file_text="x")
        with self.assertRaisesRegex(ToolError, "Cannot delete"):
            self.call("delete", path="/memories")

    def test_the_other_kind_of_client(self):
        with self.assertRaisesRegex(MnemoError, "client must be Mnemo, not AsyncMnemo"):
            MnemoMemoryTool(AsyncMnemo("http://test", "mn_key"))


if __name__ == "__main__":
    unittest.main()
