/**
 * Loaded first by each process and worker of a run under a sanitizer: has the addon that was built for it loaded in the
 * usual one's place.
 */
const { appendFileSync } = require('node:fs');
const { join, resolve } = require('node:path');

const usual = resolve(__dirname, '..', '..', 'build', 'native', 'Release', 'onesided.node');
const { ONESIDED_SANITIZED_ADDON: addon, ONESIDED_SANITIZED_LOADED: loaded } = process.env;
const { dlopen } = process;
process.dlopen = (module, file, ...rest) => {
  if (join(file) !== usual) return dlopen(module, file, ...rest);
  dlopen(module, addon, ...rest);
  appendFileSync(loaded, `${process.pid}\n`);
};
