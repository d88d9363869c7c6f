/**
 * The documentation is true: its programs run and print what it says, its links lead somewhere, and every error code
 * has its entry.
 *
 * A program is a code block that begins with "```js run OPTIONS": it is run by `onesided run
 * OPTIONS`. With the word `fails` before the options the job must fail. A block "```text output" after it is what it
 * prints: all of its lines, in any order; if it fails, what must be among the output; `…` stands for anything.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { onesided } from '../launcher/command.ts';
import { RANK_KINDS } from '../support/ranks.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = join(root, 'build/documentation');
const pages = ['.', 'docs', 'docs/guide', 'docs/decisions'].flatMap((place) =>
  readdirSync(join(root, place))
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(place, name)),
);

interface Block {
  readonly line: number;
  readonly info: string;
  readonly text: string;
}

function blocksOf(markdown: string): Block[] {
  return [...markdown.matchAll(/^```(.*)\n([\s\S]*?)^```$/gm)].map((match) => ({
    line: markdown.slice(0, match.index).split('\n').length,
    info: match[1],
    text: match[2],
  }));
}

function linesOf(text: string): string[] {
  return text.split('\n').filter((line) => line.trim() !== '');
}

/** `…` stands for anything. */
function patternOf(line: string): RegExp {
  return new RegExp(line.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&').replaceAll('…', '.*'));
}

const programs = pages.flatMap((page) => {
  const blocks = blocksOf(readFileSync(join(root, page), 'utf8'));
  return blocks.flatMap(({ info, text, line }, i) => {
    const [, fails, options] = /^js run( fails)?( .*)?$/.exec(info) ?? [];
    if (!info.startsWith('js run')) return [];
    const output = blocks.slice(i + 1, i + 3).find((block) => block.info === 'text output');
    return [{ page, line, text, fails: fails !== undefined, options: (options ?? '').trim().split(/\s+/), output }];
  });
});

/** Without the addon, programs run on threads; failures are described for processes. */
const [ranks] = RANK_KINDS;

describe('the programs of the documentation', () => {
  it.each(programs.filter(({ fails }) => ranks === 'processes' || !fails))(
    '$page, line $line, print what it says',
    async ({ page, line, text, fails, options, output }) => {
      mkdirSync(folder, { recursive: true });
      const file = join(folder, `${page.replace(/\W+/g, '-')}-${line}.mjs`);
      writeFileSync(file, text);
      // On a busy machine a rank may take seconds to start: what it says of another's failure is waited for.
      const patience = fails ? ['--grace', '30'] : [];
      const { code, stdout, stderr } = await onesided(
        'run',
        '--ranks',
        ranks,
        '--timeout',
        '150',
        ...patience,
        ...options,
        file,
      );
      const expected = linesOf(output?.text ?? '');
      expect(expected).not.toEqual([]);
      if (fails) {
        expect(code).not.toBe(0);
        for (const part of expected) expect(stdout + stderr).toMatch(patternOf(part));
      } else {
        expect(stderr).toBe('');
        expect(linesOf(stdout).sort()).toEqual(expected.sort());
        expect(code).toBe(0);
      }
    },
  );

  it('are there', () => {
    expect(programs.filter(({ page }) => page === 'docs/guide/windows.md').length).toBeGreaterThan(8);
  });
});

describe('the links of the documentation', () => {
  it.each(pages)('%s lead to files and headings that exist', (page) => {
    const markdown = readFileSync(join(root, page), 'utf8').replace(/^```[\s\S]*?^```$/gm, '');
    for (const [, link] of markdown.matchAll(/\]\(([^)]+)\)/g)) {
      if (/^https?:/.test(link)) continue;
      const [path, heading] = link.split('#');
      const target = path === '' ? page : join(dirname(page), path);
      expect(existsSync(join(root, target)), `${page} links to ${link}`).toBe(true);
      if (heading === undefined) continue;
      const headings = [...readFileSync(join(root, target), 'utf8').matchAll(/^#+ (.*)$/gm)].map(([, title]) =>
        title
          .toLowerCase()
          .replace(/[^\w\- ]/g, '')
          .replace(/ /g, '-'),
      );
      expect(headings, `${page} links to ${link}`).toContain(heading);
    }
  });
});

it('every error code has an entry, and nothing else has', () => {
  const codes = [...readFileSync(join(root, 'src/errors.ts'), 'utf8').matchAll(/^ {2}\| '(ERR_\w+)'/gm)];
  const entries = [...readFileSync(join(root, 'docs/guide/errors.md'), 'utf8').matchAll(/^### `(ERR_\w+)`/gm)];
  expect(entries.map(([, code]) => code).sort()).toEqual(codes.map(([, code]) => code).sort());
});
