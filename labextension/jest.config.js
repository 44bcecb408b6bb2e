// Packages that are ES modules only; Jest runs CommonJS.
const ES_MODULES = [
  '@jupyter/react-components',
  '@jupyter/web-components',
  '@jupyter/ydoc',
  '@jupyterlab',
  '@microsoft',
  'exenv-es6',
  'vscode-ws-jsonrpc',
  'lib0',
  'y-protocols',
  'yjs'
];

/** @type {import('jest').Config} */
module.exports = {
  testEnvironment: 'jsdom',
  testMatch: ['<rootDir>/src/__tests__/*.spec.ts'],
  modulePathIgnorePatterns: ['<rootDir>/dist'],
  setupFiles: ['<rootDir>/jest.setup.js'],
  moduleNameMapper: { '\\.svg$': '<rootDir>/src/__tests__/icon.ts' },
  transform: {
    '^.+\\.[jt]s$': [
      'ts-jest',
      {
        diagnostics: false,
        tsconfig: {
          module: 'commonjs',
          target: 'ES2022',
          allowJs: true,
          esModuleInterop: true,
          isolatedModules: true
        }
      }
    ]
  },
  transformIgnorePatterns: [`/node_modules/(?!(${ES_MODULES.join('|')})/)`],
  collectCoverageFrom: ['src/**/*.ts', '!src/__tests__/**']
};
