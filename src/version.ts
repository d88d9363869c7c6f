/**
 * The version of this package. All ranks of a job have the same, and so has the addon. It is written down here, and not
 * read from package.json, so that a bundle has it, too; `npm run check` compares the two.
 */
export const VERSION = '0.1.0';
