/** Before each test file: one seed for everything random in the run, and how to repeat a test that fails. */
import { relative } from 'node:path';
import fc from 'fast-check';
import { beforeEach } from 'vitest';
import { seedOfRun } from './ranks.ts';

const seed = seedOfRun();
fc.configureGlobal({ seed });

beforeEach(({ task, onTestFailed }) => {
  onTestFailed(() => {
    const file = relative('', task.file.filepath);
    // What encloses it, too: cases of several jobs have the same names. A regular expression, and in quotes.
    const name = task.fullTestName.replaceAll(' > ', ' ').replace(/[^\w ]/g, '.');
    console.error(`to repeat it: ONESIDED_SEED=${seed} npx vitest run ${file} -t '${name}'`);
  });
});
