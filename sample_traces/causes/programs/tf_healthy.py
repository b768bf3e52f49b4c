"""A loop of its own with a tf.function of convolutions on data that is ready: the program computes."""

import tensorflow as tf

STEPS, BATCH = 40, 64


def train():
    images, labels = tf.random.normal((BATCH * 4, 32, 32, 3)), tf.random.uniform((BATCH * 4,), 0, 10, tf.int32)
    data = tf.data.Dataset.from_tensor_slices((images, labels)).cache().repeat().batch(BATCH).prefetch(2).take(STEPS)
    kernels = [tf.Variable(tf.random.normal(shape) * 0.1) for shape in ((3, 3, 3, 32), (3, 3, 32, 32), (32, 10))]

    @tf.function
    def train_step(images, labels):
        with tf.GradientTape() as tape:
            hidden = tf.nn.relu(tf.nn.conv2d(images, kernels[0], 1, "SAME"))
            hidden = tf.reduce_mean(tf.nn.relu(tf.nn.conv2d(hidden, kernels[1], 1, "SAME")), (1, 2))
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, hidden @ kernels[2]))
        for kernel, gradient in zip(kernels, tape.gradient(loss, kernels), strict=True):
            kernel.assign_sub(0.01 * gradient)
        return loss

    for images, labels in data:
        train_step(images, labels)


if __name__ == "__main__":
    train()
