"use strict";
// The code snippet in the README works as it is.

const assert = require("node:assert/strict");
const fs = require("node:fs");
const { execFileSync } = require("node:child_process");
const { test } = require("node:test");

const { PLEIAD_ENDPOINT: endpoint, PLEIAD_README: readme } = process.env;

test("the README's snippet prints the stored values", { skip: !endpoint || !readme }, () => {
  const [, snippet] = fs.readFileSync(readme, "utf8").match(/```js\n([^]*?)```/);
  const pasted = snippet.replace("http://localhost:8081", endpoint);
  assert.equal(execFileSync(process.execPath, ["-e", pasted], { encoding: "utf8", cwd: __dirname }), "7\n[ { customer: 'ada', orders: 1 } ]\n");
});
