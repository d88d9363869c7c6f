import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

/** A folder of their own for the tests of a file or a group, which goes with them. */
export function temporaryFolder(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `onesided-${name}-`));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
