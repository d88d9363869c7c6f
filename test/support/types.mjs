/**
 * Lets a child process or worker of a test run TypeScript sources as they are:
 * `node --import test/support/types.mjs program.ts`. Node 22.18 and later strip types themselves.
 */
import { register } from 'node:module';

if (!process.features.typescript) register('./type-hooks.mjs', import.meta.url);
