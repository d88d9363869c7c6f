/** Where the results of requirements are kept, for the pages that `npm run conformance` writes. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { allChapters } from '../ranks/conformance/chapters.ts';

export const FOLDER =
  process.env['ONESIDED_TEST_RESULTS'] ?? fileURLToPath(new URL('../../build/conformance/', import.meta.url));

/** @param outcomes by number of ranks, and by number of the requirement: `passed`, `unavailable`, or what was wrong */
export function writeResults(
  chapter: string,
  kind: string,
  outcomes: ReadonlyMap<number, readonly (string | undefined)[]>,
): void {
  mkdirSync(FOLDER, { recursive: true });
  for (const [size, results] of outcomes) {
    const rows = allChapters[chapter].map(({ section, says, like, run, why }, number) => ({
      ...{ section, says, like, tested: run !== undefined, why },
      result: results[number],
    }));
    const page = { chapter, kind, size, rows };
    writeFileSync(`${FOLDER}${chapter}-${kind}-${size}.json`, `${JSON.stringify(page, undefined, 1)}\n`);
  }
}
