/** What an SVG consists of. */
import { expect } from 'vitest';

export interface Element {
  readonly name: string;
  readonly attributes: string;
  readonly depth: number;
}

/** The elements of an SVG, in order, if it is well-formed XML: every tag is closed where it must be. */
export function elementsOf(svg: string): Element[] {
  const elements: Element[] = [];
  const open: string[] = [];
  const text = svg.replace(
    /<(\/?)(\w+)((?: [\w:-]+="[^"<&]*(?:&#\d+;[^"<&]*)*")*)(\/?)>/g,
    (_, end, name, attributes, empty) => {
      if (end) expect(open.pop()).toBe(name);
      else {
        elements.push({ name, attributes, depth: open.length });
        if (!empty) open.push(name as string);
      }
      return '';
    },
  );
  expect(open).toEqual([]);
  expect(text.replace(/&#\d+;/g, '')).toMatch(/^[\n\u0020-%'-;=-\ud7ff\ue000-\ufffd]*$/);
  return elements;
}
