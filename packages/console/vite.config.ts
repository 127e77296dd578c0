import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vite'

/** Static files with relative addresses, so that they work below any path without a setting. */
export default defineConfig({
  root: fileURLToPath(new URL('page', import.meta.url)),
  base: './',
  logLevel: 'warn',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: fileURLToPath(new URL('dist/page', import.meta.url)),
    emptyOutDir: true,
    target: 'es2022',
    // Inlined files would be data: addresses, which the content security policy of the page forbids.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
})
