# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# docker build -t tc . && docker run --rm -v "$PWD:/work" tc tc-compile model.onnx -o model.bin
# The first stage builds tc and its Debian package, the second has that package and its dependencies only.
FROM debian:12 AS build
COPY . /src
WORKDIR /src
# dpkg-dev and file tell cpack what the package depends on.
RUN apt-get update && apt-get install -y --no-install-recommends dpkg-dev file && scripts/setup.sh && scripts/build.sh -DCMAKE_BUILD_TYPE=Release -DTC_BUILD_TESTS=OFF \
  && PATH="/src/.venv/bin:$PATH" cpack --config build/CPackConfig.cmake -G DEB -B /packages

FROM debian:12-slim
COPY --from=build /packages/*.deb /tmp/
RUN apt-get update && apt-get install -y --no-install-recommends /tmp/*.deb && rm -rf /tmp/*.deb /var/lib/apt/lists/*
WORKDIR /work
CMD ["tc-compile", "--help"]
