module.exports = {
  testMatch: ['**/src/**/*.spec.ts'],
  transform: {
    '^.+\\.ts$': 'ts-jest',
    // Latchkey is ES modules, which Jest can require only from Node 24.9 on.
    'node_modules/latchkey/.+\\.js$': [
      'ts-jest',
      { tsconfig: { allowJs: true, module: 'commonjs', target: 'es2023' } },
    ],
  },
  transformIgnorePatterns: ['/node_modules/(?!latchkey/)'],
}
