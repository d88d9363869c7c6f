#!/usr/bin/env node
/**
 * The `onesided` command. It is here, and not in dist/, so that it is there before anything was built: npx links the
 * command when it is first used in a clone, and keeps what it found.
 */
import { existsSync } from 'node:fs';

const main = new URL('../dist/cli/main.js', import.meta.url);
if (existsSync(main)) await import(main.href);
else {
  console.error(
    'onesided: this clone was not built yet: run "npm ci && npm run build" first (npm start and npm test build, too)',
  );
  process.exitCode = 1;
}
