"""A client with the key of an application, MNEMO_APPLICATION_KEY, against the server at MNEMO_URL."""

import os
import unittest

import mnemo
from mnemo import Mnemo


class ApplicationTest(unittest.TestCase):
    def test_users_are_separate(self):
        key = os.environ["MNEMO_APPLICATION_KEY"]
        with Mnemo(api_key=key, user="customer-1") as first:
            second = first.for_user("customer-2")
            created = first.memories.create("2026-06-01 Prefers window seats")
            self.assertEqual(first.memories.search("where do I like to sit")[0].id, created.memory_id)
            self.assertEqual(list(second.memories.list()), [])
            with self.assertRaises(mnemo.NotFoundError):
                second.memories.get(created.memory_id)

    def test_names_are_utf8(self):
        with Mnemo(api_key=os.environ["MNEMO_APPLICATION_KEY"], user="Zoë 日本") as zoe:
            created = zoe.memories.create("2026-06-01 Prefers aisle seats")
            self.assertEqual([m.id for m in zoe.memories.list()], [created.memory_id])


if __name__ == "__main__":
    unittest.main()
