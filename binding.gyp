# For `node-gyp rebuild`. The sources stand in native/CMakeLists.txt only: this hands over to cmake-js.
{
  'targets': [
    {
      'target_name': 'onesided',
      'type': 'none',
      'actions': [
        {
          'action_name': 'cmake_js',
          'message': 'Building the addon with cmake-js',
          'inputs': ['native/CMakeLists.txt', 'native/build.mjs'],
          'outputs': ['build/native/Release/onesided.node'],
          'action': ['node', 'native/build.mjs', '--force'],
        },
      ],
    },
  ],
}
