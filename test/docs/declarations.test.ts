/** The declarations in dist/ stand for themselves: they need no `@types/node`, and no newer library than a program. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { expect, test } from 'vitest';

const ROOT = new URL('../../', import.meta.url);
const { exports } = JSON.parse(readFileSync(new URL('package.json', ROOT), 'utf8')) as {
  exports: Record<string, { types?: string } | string>;
};
const files = Object.values(exports).flatMap((entry) =>
  typeof entry === 'object' && entry.types !== undefined ? [fileURLToPath(new URL(entry.types, ROOT))] : [],
);

test.each([['lib.es2022.d.ts'], ['lib.esnext.d.ts'], ['lib.es2022.d.ts', 'lib.dom.d.ts']])(
  'they compile with types: [] and %s %s',
  (...lib) => {
    expect(files.length).toBeGreaterThan(4);
    const program = ts.createProgram(files, {
      lib: lib.filter((name) => name !== undefined),
      module: ts.ModuleKind.NodeNext,
      moduleResolution: ts.ModuleResolutionKind.NodeNext,
      noEmit: true,
      skipLibCheck: false,
      strict: true,
      target: ts.ScriptTarget.ES2022,
      types: [],
    });
    const said = ts.getPreEmitDiagnostics(program).map(({ messageText, file }) => [file?.fileName, messageText]);
    expect(said).toEqual([]);
  },
);
